"""The calls of Qdrant's gRPC that the adapter makes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import qdrant_edge as edge
from qdrant_client import grpc as messages
from qdrant_client.grpc.collections_service_pb2_grpc import CollectionsServicer, add_CollectionsServicer_to_server
from qdrant_client.grpc.points_service_pb2_grpc import PointsServicer, add_PointsServicer_to_server

from tests.fakes.qdrant_server.messages import (
    edge_filter,
    edge_point,
    edge_query,
    field_index,
    record_message,
    scored_message,
)
from tests.fakes.qdrant_server.store import AlreadyExistsError, NotFoundError, Store

Context = Any

STATUSES = {NotFoundError: grpc.StatusCode.NOT_FOUND, AlreadyExistsError: grpc.StatusCode.ALREADY_EXISTS}

APPLIED = messages.UpdateResult(operation_id=1, status=messages.UpdateStatus.Completed)


class Points(PointsServicer):
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Upsert(self, request: messages.UpsertPoints, _: Context) -> messages.PointsOperationResponse:
        operation = edge.UpdateOperation.upsert_points([edge_point(point) for point in request.points])
        return self._applied(request.collection_name, operation)

    async def Delete(self, request: messages.DeletePoints, _: Context) -> messages.PointsOperationResponse:
        if request.points.HasField("filter"):
            matching = edge.UpdateOperation.delete_points_by_filter(edge_filter(request.points.filter))
            return self._applied(request.collection_name, matching)
        ids: list[Any] = [point.uuid for point in request.points.points.ids]
        return self._applied(request.collection_name, edge.UpdateOperation.delete_points(ids))

    async def CreateFieldIndex(
        self, request: messages.CreateFieldIndexCollection, _: Context
    ) -> messages.PointsOperationResponse:
        if (operation := field_index(request)) is not None:
            return self._applied(request.collection_name, operation)
        return messages.PointsOperationResponse(result=APPLIED)

    async def Get(self, request: messages.GetPoints, _: Context) -> messages.GetResponse:
        names = list(request.with_vectors.include.names)
        fields = list(request.with_payload.include.fields)
        found = self._store.shard(request.collection_name).retrieve(
            [point.uuid for point in request.ids],
            with_payload=fields or request.with_payload.enable,
            with_vector=names or request.with_vectors.enable,
        )
        return messages.GetResponse(result=[record_message(record) for record in found])

    async def QueryBatch(self, request: messages.QueryBatchPoints, _: Context) -> messages.QueryBatchResponse:
        shard = self._store.shard(request.collection_name)
        found = shard.query_batch(edge.QueryBatchRequest([edge_query(point) for point in request.query_points]))
        results = [messages.BatchResult(result=[scored_message(hit) for hit in hits]) for hits in found]
        return messages.QueryBatchResponse(result=results)

    async def Count(self, request: messages.CountPoints, _: Context) -> messages.CountResponse:
        counted = edge.CountRequest(exact=request.exact, filter=edge_filter(request.filter))
        count = self._store.shard(request.collection_name).count(counted)
        return messages.CountResponse(result=messages.CountResult(count=count))

    def _applied(self, name: str, operation: edge.UpdateOperation) -> messages.PointsOperationResponse:
        self._store.shard(name).update(operation)
        return messages.PointsOperationResponse(result=APPLIED)


class Collections(CollectionsServicer):
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Create(self, request: messages.CreateCollection, _: Context) -> messages.CollectionOperationResponse:
        self._store.create(request)
        return messages.CollectionOperationResponse(result=True)

    async def Delete(self, request: messages.DeleteCollection, _: Context) -> messages.CollectionOperationResponse:
        return messages.CollectionOperationResponse(result=self._store.delete(request.collection_name))

    async def List(self, _request: messages.ListCollectionsRequest, _: Context) -> messages.ListCollectionsResponse:
        found = [messages.CollectionDescription(name=name) for name in self._store.created]
        return messages.ListCollectionsResponse(collections=found)

    async def CollectionExists(
        self, request: messages.CollectionExistsRequest, _: Context
    ) -> messages.CollectionExistsResponse:
        exists = request.collection_name in self._store.created
        return messages.CollectionExistsResponse(result=messages.CollectionExists(exists=exists))

    async def Get(self, request: messages.GetCollectionInfoRequest, _: Context) -> messages.GetCollectionInfoResponse:
        self._store.shard(request.collection_name)
        return messages.GetCollectionInfoResponse(result=described(self._store.created[request.collection_name]))

    async def UpdateAliases(self, request: messages.ChangeAliases, _: Context) -> messages.CollectionOperationResponse:
        for action in request.actions:
            self._store.point_alias(action.create_alias.alias_name, action.create_alias.collection_name)
        return messages.CollectionOperationResponse(result=True)

    async def ListAliases(self, _request: messages.ListAliasesRequest, _: Context) -> messages.ListAliasesResponse:
        found = [
            messages.AliasDescription(alias_name=alias, collection_name=name)
            for alias, name in self._store.aliases.items()
        ]
        return messages.ListAliasesResponse(aliases=found)


def described(created: messages.CreateCollection) -> messages.CollectionInfo:
    params = messages.CollectionParams(
        shard_number=1, on_disk_payload=created.on_disk_payload, vectors_config=created.vectors_config
    )
    graph = messages.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=10_000)
    graph.MergeFrom(created.hnsw_config)
    optimizer = messages.OptimizersConfigDiff(
        deleted_threshold=0.2, vacuum_min_vector_number=1000, default_segment_number=0, flush_interval_sec=5
    )
    wal = messages.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0)
    config = messages.CollectionConfig(
        params=params, hnsw_config=graph, optimizer_config=optimizer, wal_config=wal, metadata=created.metadata
    )
    status = messages.CollectionStatus.Green
    return messages.CollectionInfo(
        status=status, optimizer_status=messages.OptimizerStatus(ok=True), segments_count=1, config=config
    )


class Statuses(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Turns an error of a call into its status, as a server of Qdrant does."""

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None

        async def call(request: Any, context: Context) -> Any:
            try:
                return await handler.unary_unary(request, context)
            except tuple(STATUSES) as error:
                await context.abort(STATUSES[type(error)], str(error))
            except Exception as error:  # The engine's errors have no classes.
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return grpc.unary_unary_rpc_method_handler(call, handler.request_deserializer, handler.response_serializer)


@asynccontextmanager
async def serving(
    root: Path, port: int = 0, interceptors: tuple[grpc.aio.ServerInterceptor, ...] = ()
) -> AsyncIterator[int]:
    """Serve the collections of a directory on the loopback; yields the port."""
    store = Store(root)
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(interceptors=(*interceptors, Statuses()), options=unlimited)
    add_PointsServicer_to_server(Points(store), server)  # type: ignore[no-untyped-call]
    add_CollectionsServicer_to_server(Collections(store), server)  # type: ignore[no-untyped-call]
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)
        store.close()

"""Messages of Qdrant's gRPC in the classes of the embedded engine, and back."""

from typing import Any

import qdrant_edge as edge
from qdrant_client import grpc

DISTANCES = {grpc.Distance.Cosine: edge.Distance.Cosine, grpc.Distance.Dot: edge.Distance.Dot}


def shard_config(created: grpc.CreateCollection) -> edge.EdgeConfig:
    config = created.vectors_config
    named = {"": config.params} if config.HasField("params") else dict(config.params_map.map)
    vectors = {name: _vector_params(vector) for name, vector in named.items()}
    return edge.EdgeConfig(vectors=vectors.get("", vectors), max_search_threads=1)


def _vector_params(params: grpc.VectorParams) -> edge.EdgeVectorParams:
    many = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    return edge.EdgeVectorParams(
        size=params.size,
        distance=DISTANCES[params.distance],
        on_disk=params.on_disk if params.HasField("on_disk") else None,
        multivector_config=many if params.HasField("multivector_config") else None,
        datatype=edge.VectorStorageDatatype.Float16 if params.datatype == grpc.Datatype.Float16 else None,
        quantization_config=_quantisation(params),
    )


def _quantisation(params: grpc.VectorParams) -> edge.ScalarQuantizationConfig | None:
    if not params.HasField("quantization_config"):
        return None
    scalar = params.quantization_config.scalar
    return edge.ScalarQuantizationConfig(edge.ScalarType.Int8, scalar.quantile, scalar.always_ram)


def edge_point(point: grpc.PointStruct) -> edge.Point:
    vectors: Any = (
        _numbers(point.vectors.vector)
        if point.vectors.HasField("vector")
        else {name: _numbers(vector) for name, vector in point.vectors.vectors.vectors.items()}
    )
    return edge.Point(point.id.uuid, vectors, {key: plain(value) for key, value in point.payload.items()})


def _numbers(vector: grpc.Vector | grpc.VectorInput) -> list[float] | list[list[float]]:
    if vector.HasField("multi_dense"):
        return [list(row.data) for row in vector.multi_dense.vectors]
    return list(vector.dense.data)


def plain(value: grpc.Value) -> Any:
    if value.HasField("struct_value"):
        return {key: plain(field) for key, field in value.struct_value.fields.items()}
    return getattr(value, str(value.WhichOneof("kind")))


def message_of(value: Any) -> grpc.Value:
    if isinstance(value, dict):
        return grpc.Value(struct_value=grpc.Struct(fields={key: message_of(field) for key, field in value.items()}))
    if isinstance(value, float):
        return grpc.Value(double_value=value)
    return grpc.Value(integer_value=value) if isinstance(value, int) else grpc.Value(string_value=value)


def edge_filter(wanted: grpc.Filter) -> edge.Filter:
    """Return a filter. Raises NotImplementedError for a condition that the adapter never sends."""
    must_not = [_condition(part) for part in wanted.must_not]
    return edge.Filter(must=[_condition(part) for part in wanted.must], must_not=must_not or None)


def _condition(condition: grpc.Condition) -> Any:
    if condition.HasField("has_id"):
        return edge.HasIdCondition({point_id.uuid for point_id in condition.has_id.has_id})
    field = condition.field
    if field.HasField("range"):
        bounds = field.range
        since, until = (getattr(bounds, name) if bounds.HasField(name) else None for name in ("gte", "lt"))
        return edge.FieldCondition(field.key, range=edge.RangeFloat(gte=since, lt=until))
    match field.match.WhichOneof("match_value"):
        case "keywords":
            return edge.FieldCondition(field.key, match=edge.MatchAny(list(field.match.keywords.strings)))
        case "integer":
            return edge.FieldCondition(field.key, match=edge.MatchValue(field.match.integer))
        case other:
            raise NotImplementedError(other)


def edge_query(query: grpc.QueryPoints) -> edge.QueryRequest:
    return edge.QueryRequest(
        query.limit,
        query=_nearest(query),
        prefetches=[_prefetch(part) for part in query.prefetch] or None,
        filter=edge_filter(query.filter),
        params=_search_params(query.params),
        with_payload=list(query.with_payload.include.fields) or False,
        with_vector=False,
    )


def _prefetch(query: grpc.PrefetchQuery) -> edge.Prefetch:
    return edge.Prefetch(
        query.limit, query=_nearest(query), params=_search_params(query.params), filter=edge_filter(query.filter)
    )


def _nearest(query: grpc.QueryPoints | grpc.PrefetchQuery) -> edge.Query | None:
    if not query.HasField("query"):
        return None
    return edge.Query.Nearest(_numbers(query.query.nearest), using=query.using or None)


def _search_params(params: grpc.SearchParams) -> edge.SearchParams:
    again = params.quantization
    quantised = edge.QuantizationSearchParams(again.ignore, again.rescore, again.oversampling)
    return edge.SearchParams(exact=params.exact, quantization=quantised if params.HasField("quantization") else None)


def field_index(request: grpc.CreateFieldIndexCollection) -> edge.UpdateOperation | None:
    """Return the creation of the tenant field's index; None for another field, which costs 10 ms and gains nothing."""
    if not request.field_index_params.keyword_index_params.is_tenant:
        return None
    return edge.UpdateOperation.create_field_index(request.field_name, edge.KeywordIndexParams(is_tenant=True))


def scored_message(point: edge.ScoredPoint) -> grpc.ScoredPoint:
    fields = {key: message_of(value) for key, value in (point.payload or {}).items()}
    return grpc.ScoredPoint(id=grpc.PointId(uuid=str(point.id)), score=point.score, payload=fields)


def record_message(record: edge.Record) -> grpc.RetrievedPoint:
    return grpc.RetrievedPoint(
        id=grpc.PointId(uuid=str(record.id)),
        payload={key: message_of(value) for key, value in (record.payload or {}).items()},
        vectors=_vectors_message(record.vector),
    )


def _vectors_message(vectors: Any) -> grpc.VectorsOutput | None:
    if vectors is None:
        return None
    if not isinstance(vectors, dict):
        return grpc.VectorsOutput(vector=_vector_message(vectors))
    named = {name: _vector_message(vector) for name, vector in vectors.items()}
    return grpc.VectorsOutput(vectors=grpc.NamedVectorsOutput(vectors=named))


def _vector_message(vector: Any) -> grpc.VectorOutput:
    if len(vector) and not isinstance(vector[0], float):
        rows = [grpc.DenseVector(data=row) for row in vector]
        return grpc.VectorOutput(multi_dense=grpc.MultiDenseVector(vectors=rows))
    return grpc.VectorOutput(dense=grpc.DenseVector(data=vector))

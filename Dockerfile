# One worker against a running Kafka and Qdrant server; docker-compose.yml has all three.
FROM python:3.11-slim AS build
COPY requirements.lock .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --requirement requirements.lock
COPY client client
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation ./client

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home worker && install --directory --owner worker --group worker /data
COPY --from=build /venv /venv
WORKDIR /app
COPY schemas schemas
COPY agents agents
COPY streams streams
COPY operations operations
COPY gateway gateway
USER worker
# Tables, lexical index and models; rebuilt from Kafka if lost.
VOLUME /data
ENV MODESTREAM_DATA_DIR=/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
# As the first process it gets SIGTERM, finishes what is in flight, commits and exits.
ENTRYPOINT ["/venv/bin/python", "-m", "streams"]
CMD ["worker"]

# One worker against a running Kafka and Qdrant server; docker-compose.yml has all three.
FROM python:3.11-slim AS build
COPY requirements.runtime.lock .
# One package has no wheel for arm64.
RUN python -m venv /venv \
 && if [ "$(uname -m)" != x86_64 ]; then from_source="--no-binary faust-streaming" \
 && apt-get update -qq && apt-get install -qq -y --no-install-recommends gcc libc6-dev; fi \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    $from_source --requirement requirements.runtime.lock

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home worker && install --directory --owner worker --group worker /data
COPY --from=build /venv /venv
WORKDIR /app
COPY schemas schemas
COPY agents agents
COPY streams streams
COPY operations operations
COPY gateway gateway
COPY client/modestream_client modestream_client
USER worker
# Tables, lexical index and models; rebuilt from Kafka if lost.
VOLUME /data
ENV MODESTREAM_DATA_DIR=/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
# As the first process it gets SIGTERM, finishes what is in flight, commits and exits.
ENTRYPOINT ["/venv/bin/python", "-m", "streams"]
CMD ["worker"]

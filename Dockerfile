# Two images. The last stage is all in one, the broker included: docker run -p 8080:8080 -v memory:/data modestream
# `--target worker` is a worker or a gateway against a running Kafka, as docker-compose.yml and deploy/kubernetes use it.
FROM python:3.11-slim AS build
COPY requirements.runtime.lock .
# One package has no wheel for arm64.
RUN python -m venv /venv \
 && if [ "$(uname -m)" != x86_64 ]; then from_source="--no-binary faust-streaming" \
 && apt-get update -qq && apt-get install -qq -y --no-install-recommends gcc libc6-dev; fi \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    $from_source --requirement requirements.runtime.lock

FROM build AS build-broker
COPY requirements.broker.lock .
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --requirement requirements.broker.lock

FROM python:3.11-slim AS application
RUN useradd --uid 10001 --create-home worker && install --directory --owner worker --group worker /data /files
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

FROM application AS worker
COPY --from=build /venv /venv
CMD ["worker"]

FROM application
COPY --from=build-broker /venv /venv
# Kafka's jars, and the archive that makes its starts quick.
RUN /venv/bin/python -m streams up --fetch
# The log is below /data too: the volume is all there is. A key is printed at the first start.
ENV MODESTREAM_GATEWAY_BIND=0.0.0.0:8080 MODESTREAM_GATEWAY_KEYS=/data/keys.json
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=10s --retries=4 --start-period=120s \
    CMD ["/venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/ready', timeout=5)"]
CMD ["up"]

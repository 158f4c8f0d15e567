# One worker against a Kafka and a Qdrant server that are already there; docker-compose.yml has all three.
FROM python:3.11-slim AS build
COPY requirements.lock .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --requirement requirements.lock

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home worker && install --directory --owner worker --group worker /data
COPY --from=build /venv /venv
WORKDIR /app
COPY schemas schemas
COPY agents agents
COPY streams streams
USER worker
# Tables, word index and model: made again from Kafka where they are lost, which takes its time.
VOLUME /data
ENV MODESTREAM_DATA_DIR=/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# As the first process it gets SIGTERM itself, finishes what is under way and commits.
ENTRYPOINT ["/venv/bin/python", "-m", "streams"]
CMD ["worker"]

# A small image that runs without root, without a writable file system and without a network.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE server.py ./
COPY advisor advisor
COPY tools tools
COPY rules rules
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir .

FROM python:3.12-slim
LABEL org.opencontainers.image.title="TrainFit" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="io.github.trainfit/trainfit"
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8321
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8321/healthz', timeout=3)"]
ENTRYPOINT ["trainfit", "serve"]
# It listens to all addresses of the container and starts only with keys: TRAINFIT_KEYS, or --keys-file.
CMD ["--http", "--host", "0.0.0.0"]

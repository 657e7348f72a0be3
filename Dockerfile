# The demo on a machine that has nothing but Docker (no torch, no GPU):
#   docker build -t milp-planner . && docker run --rm milp-planner
# Any other command:
#   docker run --rm -v "$PWD:/data" -w /data milp-planner milp-planner plan model.yaml cluster.yaml
FROM python:3.13-slim

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends make \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 planner \
 && install -d -o 1000 /opt/milp-planner /opt/venv
WORKDIR /opt/milp-planner
COPY --chown=1000 . .
USER 1000
# installs, and compiles the loops of the search
RUN make /opt/venv/.installed VENV=/opt/venv
ENV PATH=/opt/venv/bin:$PATH
CMD ["make", "demo", "VENV=/opt/venv", "OUT=/tmp/demo"]

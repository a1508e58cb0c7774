# synthbench with its methods, evaluators and the sandbox.
#
#   docker build -t synthbench .                              (CPU)
#   docker build -t synthbench --build-arg DEVICE=cuda .      (NVIDIA GPUs; the machine needs the container toolkit)
#   docker run --rm -v "$PWD:/work" synthbench run experiments/quickstart.yaml
#
# /work is the working folder: experiments, reports, and the store in .synthbench.

FROM python:3.11-slim

# PyTorch's own index has builds for CPUs; PyPI's build for Linux brings CUDA's libraries.
ARG DEVICE=cpu
WORKDIR /opt/synthbench
COPY constraints.txt ./
RUN case "$DEVICE" in \
        cpu) index=https://download.pytorch.org/whl/cpu ;; \
        cuda) index=https://pypi.org/simple ;; \
        *) echo "DEVICE=$DEVICE: cpu or cuda" >&2; exit 2 ;; \
    esac \
    && pip install --no-cache-dir --index-url "$index" "$(grep '^torch==' constraints.txt)"

COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY synthbench synthbench
COPY methods methods
COPY evaluators evaluators
COPY experiments experiments
COPY reports/published reports/published
RUN pip install --no-cache-dir -c constraints.txt .

RUN useradd --create-home user && mkdir /work && chown user /work
USER user
WORKDIR /work
ENTRYPOINT ["synthbench"]
CMD ["--help"]

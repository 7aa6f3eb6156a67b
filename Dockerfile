# LikeForLike in a container. Two targets:
#
#   docker build -t likeforlike .                          CPU (or another torch build, see TORCH_INDEX)
#   docker build -t likeforlike:gaudi --target gaudi .     Gaudi, on Intel's image, which brings torch
#
#   docker run --rm --init -p 127.0.0.1:8501:8501 -v likeforlike:/srv/var likeforlike
#
# Inside, the app listens on all of the container's addresses, or nothing could reach it; what is published is for the
# command above to say, and it says this computer only. The app has no log-in: keep the 127.0.0.1.

# Docker's own Python images, 3.11 or newer.
ARG BASE_IMAGE=python:3.11-slim-bookworm
# Intel's image for the driver that the host has. The Ubuntu 24.04 ones have Python 3.12; the 22.04 ones 3.10, too old.
ARG GAUDI_IMAGE=vault.habana.ai/gaudi-docker/1.24.0/ubuntu24.04/habanalabs/pytorch-installer-2.10.0:latest


FROM ${GAUDI_IMAGE} AS gaudi
WORKDIR /srv
COPY requirements-gaudi.txt ./
# A virtual environment that sees the image's packages, with a list of those that pip must not replace. It comes first
# on PATH, since optimum-habana asks the pip found there for habana-torch-plugin.
RUN python3 -c 'import sys; assert sys.version_info >= (3, 11), "Python >= 3.11 needed: take an ubuntu24.04 image"' \
    && python3 -m venv --system-site-packages /opt/likeforlike \
    && python3 -c 'import importlib.metadata as m; [print(f"{n}=={d.version}") for d in m.distributions() for n in [d.name.lower().replace("_", "-")] if n in ("torch", "torchvision", "torchaudio", "habana-torch-plugin")]' > /opt/likeforlike/machine.txt \
    && grep -q '^habana-torch-plugin==' /opt/likeforlike/machine.txt \
    && /opt/likeforlike/bin/pip install --no-cache-dir -r requirements-gaudi.txt -c /opt/likeforlike/machine.txt
ENV PATH=/opt/likeforlike/bin:$PATH

RUN useradd --system --uid 10001 --create-home --home-dir /home/likeforlike likeforlike \
    && mkdir /srv/var && chown likeforlike /srv/var
COPY . .
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LIKEFORLIKE_VAR=/srv/var HF_HOME=/srv/var/huggingface
USER likeforlike
VOLUME /srv/var
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8501, timeout=4); c.request('GET', '/_stcore/health'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["python3", "-m", "streamlit", "run", "streamlit_app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]


# The last stage is what a plain `docker build` makes.
FROM ${BASE_IMAGE} AS default
WORKDIR /srv
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements.txt ./
# torch first, from its own index, and the pin of it in one place only.
RUN pip install --no-cache-dir "$(grep '^torch==' requirements.txt)" --index-url "${TORCH_INDEX}" \
    && pip install --no-cache-dir -r requirements.txt

RUN useradd --system --uid 10001 --create-home --home-dir /home/likeforlike likeforlike \
    && mkdir /srv/var && chown likeforlike /srv/var
COPY . .
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LIKEFORLIKE_VAR=/srv/var HF_HOME=/srv/var/huggingface
USER likeforlike
VOLUME /srv/var
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8501, timeout=4); c.request('GET', '/_stcore/health'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["python3", "-m", "streamlit", "run", "streamlit_app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]

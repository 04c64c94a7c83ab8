"""Weights handed out over HTTP: whole, by version, to who knows the key, and nothing else; which way is taken."""

from __future__ import annotations

from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from curation.records import PolicyError
from training.generation.weight_server import WeightServer
from training.generation.weight_transfer import fastest_way, weights_folder


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "v00000003"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"model-{number}.safetensors").write_bytes(bytes([number]) * (3_000_000 + number))
    (folder / "secret.json").write_text("{}")
    (tmp_path / "run" / "v00000004").mkdir()
    (tmp_path / "outside.safetensors").write_bytes(b"other")
    return folder


def test_a_version_is_fetched_whole_and_goes_afterwards(version: Path) -> None:
    server = WeightServer(version.parent, "127.0.0.1")
    try:
        with weights_folder("/nowhere", server.url_of(version)) as folder:
            fetched = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert fetched == {path.name: path.read_bytes() for path in version.glob("*.safetensors")}
        assert not folder.exists()
        with weights_folder(str(version), server.url_of(version)) as folder:
            assert folder == version  # seen here, so nothing travels
    finally:
        server.close()


@pytest.mark.parametrize("path", ["secret.json", "../../outside.safetensors", "%2e%2e/outside.safetensors"])
def test_nothing_else_is_handed_out(version: Path, path: str) -> None:
    server = WeightServer(version.parent, "127.0.0.1")
    url = server.url_of(version)
    key = url.split("/")[3]
    tried = (f"{url}/{path}", f"{url.replace(key, 'guess')}/model-1.safetensors", f"{url[:-1]}4/", f"{url[:-1]}9/")
    try:
        for one in tried:
            with pytest.raises(HTTPError, match="404"):
                urlopen(one)
    finally:
        server.close()


def test_an_address_of_another_machine_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"new weights: cannot listen on 203\.0\.113\.9"):
        WeightServer(tmp_path, "203.0.113.9")


HERE, THERE, GPU = ("http://127.0.0.1:8000", "http://localhost:8001/v1"), ("http://gpu-2:8000",), "0.32.0"


@pytest.mark.parametrize(
    ("urls", "device", "vllm", "way"),
    [
        (HERE, "cpu", GPU, "folder"),
        ((*HERE, *THERE), "cpu", GPU, "http"),
        (HERE, "cuda", GPU, "nccl"),
        (HERE, "cuda:1", GPU, "nccl"),
        (HERE, "cuda", None, "folder"),  # nothing here could join a group
        (HERE, "cuda", "0.32.0+cpu", "folder"),
        (THERE, "cuda", GPU, "http"),  # whether they can be reached so is not known
    ],
)
def test_the_way_follows_from_where_trainer_and_servers_are(
    urls: tuple[str, ...], device: str, vllm: str | None, way: str
) -> None:
    assert fastest_way(urls, device, vllm) == way

"""The tables of versions are in order, and of one mind with each other."""

from __future__ import annotations

from preflight.expect.models import models
from preflight.judge.stack.compat import _arch
from preflight.judge.stack.tables import cuda_table, torch_releases
from preflight.judge.versions import release


def test_releases_stand_in_their_order() -> None:
    rows = cuda_table().releases
    for key in ("cuda", "driver"):
        order = [release(getattr(row, key)) for row in rows]
        assert order == sorted(order)
        assert len({one[:2] for one in order}) == len(rows)


def test_compatibility_begins_with_a_driver_of_that_cuda() -> None:
    first = {
        release(row.cuda)[0]: release(row.driver)[0] for row in reversed(cuda_table().releases)
    }
    for row in cuda_table().minor_from:
        assert release(row.driver)[0] == first[row.major]


def test_every_gpu_has_a_capability_and_a_generation_that_are_known() -> None:
    capabilities = {row.capability for row in cuda_table().capabilities}
    generations = {row.generation for row in cuda_table().generations}
    for model in models():
        assert model.capability in capabilities, model
        assert model.generation in generations, model


def test_every_build_of_torch_is_for_gpus_that_its_cuda_knows() -> None:
    since = {row.capability: row for row in cuda_table().capabilities}
    for row in torch_releases():
        for cuda, archs in row.archs.items():
            for arch in archs.split():
                at = _arch(arch)
                assert at is not None
                known = since[".".join(map(str, at[0]))]
                assert release(known.since) <= release(cuda), (row.torch, cuda, arch)
                assert not known.dropped or release(cuda) < release(known.dropped)


def test_releases_of_torch_stand_once_and_in_order() -> None:
    order = [release(row.torch) for row in torch_releases()]
    assert order == sorted(order)
    assert len(set(order)) == len(order)

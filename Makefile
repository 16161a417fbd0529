# make help says what there is. Everything happens in .venv; nothing outside this folder is changed,
# save for the Debian packages below, and those only where `make test` runs as root and lacks them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test bench gpu-test accuracy fuzz clean packages

# The Python that .venv is made from, once; `make clean` first to change it.
PYTHON ?= python3
# For `make run ARGS='--level standard'` and `make test PYTEST_ARGS='-k pcie -x'`.
ARGS ?=
PYTEST_ARGS ?=
# For `make fuzz N=20000 SEED=2`.
N ?= 1000000
SEED ?= 1

VENV := .venv
READY := $(VENV)/.ready
# What tests need beyond Python, each as command:Debian-package.
APT := unshare:util-linux busybox:busybox dash:dash mkfs.ext4:e2fsprogs lspci:pciutils gcc:gcc \
  ssh:openssh-client ip:iproute2 nft:nftables fio:fio mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs \
  pdsh:pdsh tcsh:tcsh bsd-csh:csh fish:fish zsh:zsh srun:slurm-client
# Where systemd runs, installing these would start them: there they are only named.
SERVICES := sshd:openssh-server munged:munge slurmctld:slurmctld slurmd:slurmd

help:
	@echo "make run      check this machine: preflight run (ARGS='--level standard' and so on)"
	@echo "make test     lint, types and tests (PYTEST_ARGS='-k pcie')"
	@echo "make bench    start-up, a large host, 1,000 hosts, large logs, traces, 128 hosts over SSH, the"
	@echo "              training loop, collectives, storage and loaders beside fio, looks at"
	@echo "              processes, against targets"
	@echo "make gpu-test training and stress of one GPU against targets, in minutes; PYTHON is one that has torch"
	@echo "make accuracy the first cause of labelled logs, traces and dumps: 1 min; what went wrong with a"
	@echo "              loss, in drawn logs: 3 min; slow hosts and links in 1,000 simulated clusters of"
	@echo "              each kind: 20 min; in real"
	@echo "              ones of five hosts, over shaped links, as root: 5 min; every"
	@echo "              injected fault of training, in three seeds, and twenty clean runs: 30 min"
	@echo "make fuzz     a million mutated inputs over every parser (N=20000 for fewer, SEED=2)"
	@echo "make clean    remove .venv and everything that was built"
	@echo "PYTHON=python3.12 chooses what .venv is made from"

# 1 (something failed) and 3 (something could not be determined) are answers about the machine, not
# faults of make; 2, 70 and 130 are.
run: $(READY)
	@$(VENV)/bin/preflight run $(ARGS); status=$$?; \
	case $$status in \
	  0) meaning="nothing failed" ;; \
	  1) meaning="at least one check failed: see the report" ;; \
	  2) meaning="preflight could not start" ;; \
	  3) meaning="nothing failed, but something could not be determined: see the report" ;; \
	  130) meaning="interrupted" ;; \
	  *) meaning="a bug in preflight" ;; \
	esac; \
	echo "preflight run: exit status $$status ($$meaning)" >&2; \
	case $$status in 0|1|3) exit 0 ;; *) exit $$status ;; esac

# Commands that tests start read byte code, as a user's do, even where the environment forbids it.
test: packages $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	PYTHONDONTWRITEBYTECODE= $(VENV)/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# All run, even where one misses its target.
bench: $(READY)
	@status=0; \
	$(VENV)/bin/python -m bench.startup || status=$$?; \
	$(VENV)/bin/python -m bench.topology || status=$$?; \
	$(VENV)/bin/python -m bench.fleet || status=$$?; \
	$(VENV)/bin/python -m bench.kernel_log || status=$$?; \
	$(VENV)/bin/python -m bench.nccl_log || status=$$?; \
	$(VENV)/bin/python -m bench.trace || status=$$?; \
	$(VENV)/bin/python -m bench.training_log || status=$$?; \
	$(VENV)/bin/python -m bench.fanout || status=$$?; \
	$(VENV)/bin/python -m bench.training || status=$$?; \
	$(VENV)/bin/python -m bench.collectives || status=$$?; \
	$(VENV)/bin/python -m bench.fio_log || status=$$?; \
	$(VENV)/bin/python -m bench.storage || status=$$?; \
	$(VENV)/bin/python -m bench.loaders || status=$$?; \
	$(VENV)/bin/python -m bench.saves || status=$$?; \
	$(VENV)/bin/python -m bench.checkpoint || status=$$?; \
	$(VENV)/bin/python -m bench.look || status=$$?; \
	$(VENV)/bin/python -m bench.guard || status=$$?; \
	exit $$status

# From a bare clone, without a network and without .venv: PYTHON has torch for the GPU here.
# For `make gpu-test ARGS='--only mfu --json figures.json'`.
gpu-test:
	@PYTHONPATH=src:. $(PYTHON) -m bench.gpu $(ARGS)

# ARGS is for the faults alone.
accuracy: $(READY)
	@status=0; \
	$(VENV)/bin/python -m bench.step_time_accuracy || status=$$?; \
	$(VENV)/bin/python -m bench.divergence_accuracy || status=$$?; \
	$(VENV)/bin/python -m bench.divergence_accuracy || status=$$?; \
	$(VENV)/bin/python -m bench.localisation || status=$$?; \
	$(VENV)/bin/python -m bench.shaped || status=$$?; \
	$(VENV)/bin/python -m bench.faults $(ARGS) || status=$$?; \
	exit $$status

# The first failure of each kind is kept in build/fuzz, made small.
fuzz: $(READY)
	@$(VENV)/bin/python -m fuzz -n $(N) --seed $(SEED)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests bench fuzz checks -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "error: preflight needs Python 3.10 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1)" >&2; \
	  echo "hint: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3.12" >&2; exit 1; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e '.[dev,torch,objects]' -c constraints.txt
	@touch $@

# Without the right to install, or without a network, the tests that need a command skip themselves
# and say so; under CI=true they fail.
packages:
	@export PATH="$$PATH:/usr/sbin:/sbin" DEBIAN_FRONTEND=noninteractive; missing=""; \
	[ -d /run/systemd/system ] && wanted="$(APT)" || wanted="$(APT) $(SERVICES)"; \
	for pair in $$wanted; do \
	  command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair##*:}"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null && exit 0; \
	fi; \
	echo "note: not installed:$$missing (tests that need them are skipped)" >&2

"""Texts that tell of software and limits, in the layouts of their tools; values are made up."""

# ruff: noqa: E501, W291

from __future__ import annotations

COLLECT_ENV_OLD = """\
PyTorch version: 0.4.0
Is debug build: No
CUDA used to build PyTorch: 9.0.176

OS: Ubuntu 16.04.4 LTS
GCC version: (Ubuntu 5.4.0-6ubuntu1~16.04.9) 5.4.0 20160609
CMake version: version 3.5.1

Python version: 3.6
Is CUDA available: Yes
CUDA runtime version: 9.0.176
GPU models and configuration: 
GPU 0: GeForce GTX 1080 Ti
GPU 1: GeForce GTX 1080 Ti

Nvidia driver version: 384.111
cuDNN version: Probably one of the following:
/usr/local/cuda-9.0/lib64/libcudnn.so
/usr/local/cuda-9.0/lib64/libcudnn.so.7.0.5
/usr/local/cuda-9.0/lib64/libcudnn_static.a

Versions of relevant libraries:
[pip3] numpy (1.14.2)
[pip3] torch (0.4.0)
[conda] pytorch                   0.4.0           py36_cuda9.0.176_cudnn7.0.5_1    pytorch
"""
COLLECT_ENV_CPU = """\
Collecting environment information...
PyTorch version: 2.9.0+cpu
Is debug build: False
CUDA used to build PyTorch: Could not collect
ROCM used to build PyTorch: N/A

OS: Debian GNU/Linux 12 (bookworm) (x86_64)
GCC version: (Debian 12.2.0-14) 12.2.0
Libc version: glibc-2.36

Python version: 3.11.7 (main, Jan 17 2024, 06:22:00) [GCC 12.2.0] (64-bit runtime)
Python platform: Linux-3.10.0-1160.el7.x86_64-x86_64-with-glibc2.36
Is CUDA available: False
CUDA runtime version: No CUDA
CUDA_MODULE_LOADING set to: N/A
GPU models and configuration: No CUDA
Nvidia driver version: No CUDA
cuDNN version: No CUDA
Is XPU available: False
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True
Caching allocator config: N/A

CPU:
Architecture:                            x86_64
CPU(s):                                  4
Model name:                              AMD EPYC 7763 64-Core Processor
Flags:                                   fpu vme de pse tsc msr
Socket(s):                               1

Versions of relevant libraries:
[pip3] torch==2.9.0+cpu
[conda] Could not collect
"""
COLLECT_ENV_ROCM = """\
PyTorch version: 2.3.0+rocm6.0
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.0.32830-d62f6a171

OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.10.14 (main, May  6 2024, 19:42:50) [GCC 11.2.0] (64-bit runtime)
Is CUDA available: True
CUDA runtime version: Could not collect
GPU models and configuration: AMD Instinct MI250X (gfx90a:sramecc+:xnack-)
Nvidia driver version: Could not collect
cuDNN version: Could not collect
HIP runtime version: 6.0.32830
MIOpen runtime version: 3.0.0

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] pytorch-triton-rocm==2.3.0
[pip3] torch==2.3.0+rocm6.0
"""
COLLECT_ENV_NO_TORCH = """\
Collecting environment information...
PyTorch version: N/A
Is debug build: N/A
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.10.14 (main, May  6 2024, 19:42:50) [GCC 11.2.0] (64-bit runtime)
Is CUDA available: N/A
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000000)
  MIG 3g.20gb     Device  0:
Nvidia driver version: 550.54.15
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0

Versions of relevant libraries:
[pip3] Could not collect
"""
COLLECT_ENV_VLLM = """\
Collecting environment information...
==============================
        System Info
==============================
OS                           : Ubuntu 22.04.5 LTS (x86_64)
GCC version                  : (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version                : Could not collect
CMake version                : version 3.31.6
Libc version                 : glibc-2.35

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
      Python Environment
==============================
Python version               : 3.12.10 (main, Apr  9 2025, 08:55:05) [GCC 11.4.0] (64-bit runtime)
Python platform              : Linux-5.15.0-1086-aws-x86_64-with-glibc2.35

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.8.93
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration : 
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version        : 570.133.20
cuDNN version                : Could not collect
HIP runtime version          : N/A
MIOpen runtime version       : N/A
Is XNNPACK available         : True

==============================
          CPU Info
==============================
Architecture:                         x86_64
CPU op-mode(s):                       32-bit, 64-bit
CPU(s):                               192
Model name:                           Intel(R) Xeon(R) Platinum 8488C
Flags:                                fpu vme hypervisor
Hypervisor vendor:                    KVM
NUMA node(s):                         2

==============================
Versions of relevant libraries
==============================
[pip3] numpy==2.2.6
[pip3] nvidia-nccl-cu12==2.26.2
[pip3] torch==2.7.0
[pip3] transformers==4.52.4
[conda] Could not collect

==============================
         vLLM Info
==============================
ROCM Version                 : Could not collect
Neuron SDK Version           : N/A
vLLM Version                 : 0.9.1
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
GPU Topology:
  \tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\t0-95\t0\t\tN/A
GPU1\tNV18\t X \t0-95\t0\t\tN/A

Legend:

  X    = Self

==============================
     Environment Variables
==============================
NVIDIA_VISIBLE_DEVICES=all
HF_TOKEN=hf_0000000000000000000000000000
CUDA_VERSION=12.8.1
LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64
NCCL_CUMEM_ENABLE=0
PYTORCH_NVML_BASED_CUDA_CHECK=1
TORCHINDUCTOR_COMPILE_THREADS=1
"""
SGLANG_VM = """\
Python: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0]
CUDA available: True
GPU 0,1,3: NVIDIA A100-SXM4-80GB
GPU 2: NVIDIA A100-SXM4-40GB
GPU 0,1,2,3 Compute Capability: 8.0
CUDA_HOME: None
NVCC: Not Available
CUDA Driver Version: 550.54.15
PyTorch: 2.4.0+cu121
flashinfer: Module Not Found
transformers: 4.44.2
requests: 2.32.3
NVIDIA Topology: 
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV12\tNV12\tNV12\t0-63\t0\t\tN/A

Hypervisor vendor: KVM
ulimit soft: 1024
"""
DS_REPORT = """\
[2024-11-05 10:20:30,123] [INFO] [real_accelerator.py:203:get_accelerator] Setting ds_accelerator to cuda (auto detect)
--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
NOTE: Ops not installed will be just-in-time (JIT) compiled at
      runtime if needed. Op compatibility means that your system
      meet the required dependencies to JIT install the op.
--------------------------------------------------
JIT compiled ops requires ninja
\x1b[92mninja .................. [OKAY]\x1b[0m
--------------------------------------------------
op name ................ installed .. compatible
--------------------------------------------------
\x1b[93m [WARNING] \x1b[0m async_io requires the dev libaio .so object and headers but these were not found.
\x1b[93m [WARNING] \x1b[0m async_io: please install the libaio-dev package with apt
async_io ............... \x1b[93m[NO]\x1b[0m ....... \x1b[93m[NO]\x1b[0m
fused_adam ............. \x1b[93m[NO]\x1b[0m ....... \x1b[92m[OKAY]\x1b[0m
cpu_adam ............... \x1b[92m[YES]\x1b[0m ...... \x1b[92m[OKAY]\x1b[0m
[2024-11-05 10:20:31,456] [WARNING] [builder.py:100:x] using untested triton version (3.1.0)
gds .................... [NO] ....... [FAIL]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/lib/python3.11/site-packages/torch']
torch version .................... 2.5.1+cu124
deepspeed install path ........... ['/opt/conda/lib/python3.11/site-packages/deepspeed']
deepspeed info ................... 0.16.2, unknown, unknown
torch cuda version ............... 12.4
torch hip version ................ None
nvcc version ..................... \x1b[31m[FAIL] cannot find CUDA_HOME via torch.utils.cpp_extension.CUDA_HOME=None \x1b[0m
deepspeed wheel compiled w. ...... torch 0.0, cuda 0.0
shared memory (/dev/shm) size .... 503.79 GB
"""
DS_REPORT_ROCM = """\
--------------------------------------------------
op name ................ installed .. compatible
--------------------------------------------------
deepspeed_not_implemented  [NO] ....... [OKAY]
async_io ............... [NO] ....... [OKAY]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/lib/python3.11/site-packages/torch']
torch version .................... 2.3.1+rocm6.0
deepspeed info ................... 0.14.0, unknown, unknown
torch cuda version ............... None
torch hip version ................ 6.0.32830-d62f6a171
nvcc version ..................... None
deepspeed wheel compiled w. ...... torch 2.3, hip 0.0
shared memory (/dev/shm) size .... 500.00 GB
"""
TRANSFORMERS_ENV = """\
Copy-and-paste the text below in your GitHub issue and FILL OUT the two last points.

- `transformers` version: 4.41.2
- Platform: Linux-5.15.0-1061-aws-x86_64-with-glibc2.31
- Python version: 3.10.12
- Huggingface_hub version: 0.23.2
- Safetensors version: 0.4.3
- Accelerate version: not installed
- Accelerate config:    not found
- PyTorch version (GPU?): 2.3.0+cu121 (True)
- Tensorflow version (GPU?): not installed (NA)
- Flax version (CPU?/GPU?/TPU?): not installed (NA)
- Using GPU in script?: <fill in>
"""
ACCELERATE_ENV = """\
- `Accelerate` version: 1.7.0
- Platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35
- `accelerate` bash location: /opt/conda/bin/accelerate
- Python version: 3.11.12
- Numpy version: 2.2.6
- PyTorch version: 2.7.0+cu126
- PyTorch accelerator: CUDA
- System RAM: 2015.56 GB
- GPU type: NVIDIA H100 80GB HBM3
- `Accelerate` default config:
        - distributed_type: MULTI_GPU
        - num_processes: 8
"""
LIGHTNING_ENV = """\
* CUDA:
\t- GPU:
\t\t- NVIDIA A100-SXM4-40GB
\t\t- NVIDIA A100-SXM4-40GB
\t- available:         True
\t- version:           12.1
* Lightning:
\t- lightning:         2.2.4
\t- torch:             2.3.0
\t- torchmetrics:      1.3.2
* Packages:
\t- aiohttp:           3.9.5
\t- nvidia-nccl-cu12:  2.20.5
\t- torch:             2.3.0
* System:
\t- OS:                Linux
\t- architecture:
\t\t- 64bit
\t\t- ELF
\t- processor:         x86_64
\t- python:            3.10.14
\t- release:           5.15.0-105-generic
\t- version:           #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024
"""
PIP_FREEZE = """\
accelerate==0.30.1
# Editable install with no version control (apex==0.1)
-e /opt/apex
flash-attn @ file:///build/flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl#sha256=00
-e git+https://user:secret@example.org/megatron.git@0123456789abcdef#egg=megatron_core
nvidia-nccl-cu12==2.20.5
# a comment
torch==2.3.0+cu121
numpy @ file:///croot/numpy_1708638617955/dist
ruamel.yaml[jinja2]==0.18.6 ; python_version >= "3.8"
triton===2.3.0
"""
PIP_LIST = """\
Package                  Version       Editable project location
------------------------ ------------- -------------------------
deepspeed                0.14.2
flash_attn               2.5.8
megatron-core            0.7.0rc0      /workspace/megatron lm
nvidia-nccl-cu12         2.20.5
torch                    2.3.0+cu121

[notice] A new release of pip is available: 23.0.1 -> 24.0
[notice] To update, run: pip install --upgrade pip
"""
PIP_LIST_JSON = (
    '[{"name": "torch", "version": "2.3.0"}, {"name": "flash_attn", "version": "2.5.8"},\n'
    ' {"name": "megatron-core", "version": "0.7.0", "editable_project_location": "/w"}]\n'
)
PIP_LIST_OLD = "numpy (1.14.2)\ntorch (0.4.0)\nvision (0.2, /opt/vision)\n"
CONDA_LIST = """\
# packages in environment at /opt/conda:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                 conda_forge    conda-forge
blas                      1.0                         mkl  
cuda-nvcc                 12.1.105                      0    nvidia
nccl                      2.21.5.1             h6103f9b_0    conda-forge
numpy                     1.26.4          py39heeff2f4_0  
python                    3.9.19               h955ad1f_1  
pytorch                   2.1.0           py3.9_cuda12.1_cudnn8.9.2_0    pytorch
pytorch-cuda              12.1                 ha16c6d3_5    pytorch
transformers              4.41.2                   pypi_0    pypi
"""
CONDA_LIST_JSON = """\
[
  {
    "base_url": "https://conda.anaconda.org/conda-forge",
    "build_number": 300,
    "build_string": "cuda126_mkl_py312_h30b5a27_300",
    "channel": "conda-forge",
    "dist_name": "pytorch-2.6.0-cuda126_mkl_py312_h30b5a27_300",
    "name": "pytorch",
    "platform": "linux-64",
    "version": "2.6.0"
  }
]
"""
CONDA_LIST_EXPORT = """\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
python=3.12.9=h5148396_0
pytorch=2.6.0=cpu_generic_py312_h6a7998d_0
"""
MAMBA_LIST = """\
List of packages in environment: "/opt/mamba/envs/train"

  Name                   Version       Build                 Channel    
──────────────────────────────────────────────────────────────────────────
  _openmp_mutex          4.5           2_gnu                 conda-forge
  pytorch                2.5.1         cuda118_py311h0_306   conda-forge
"""
LISTS = (PIP_LIST, PIP_LIST_JSON, PIP_LIST_OLD)
CONDA_LISTS = (CONDA_LIST, CONDA_LIST_JSON, CONDA_LIST_EXPORT, MAMBA_LIST)

BASH = """\
real-time non-blocking time  (microseconds, -R) unlimited
core file size              (blocks, -c) 0
data seg size               (kbytes, -d) unlimited
scheduling priority                 (-e) 0
file size                   (blocks, -f) unlimited
pending signals                     (-i) 2061422
max locked memory           (kbytes, -l) 65536
max memory size             (kbytes, -m) unlimited
open files                          (-n) 1024
pipe size                (512 bytes, -p) 8
POSIX message queues         (bytes, -q) 819200
real-time priority                  (-r) 0
stack size                  (kbytes, -s) 8192
cpu time                   (seconds, -t) unlimited
max user processes                  (-u) 2061422
virtual memory              (kbytes, -v) unlimited
file locks                          (-x) unlimited
"""
DASH = """\
time(seconds)        unlimited
file(blocks)         unlimited
data(kbytes)         unlimited
stack(kbytes)        8192
coredump(blocks)     0
memory(kbytes)       unlimited
locked memory(kbytes) 65536
process              2061422
nofiles              1024
vmemory(kbytes)      unlimited
locks                unlimited
rtprio               0
"""
ZSH = """\
-t: cpu time (seconds)              unlimited
-f: file size (blocks)              unlimited
-d: data seg size (kbytes)          unlimited
-s: stack size (kbytes)             8192
-c: core file size (blocks)         0
-m: resident set size (kbytes)      unlimited
-u: processes                       2061422
-n: file descriptors                1024
-l: locked-in-memory size (kbytes)  65536
-v: address space (kbytes)          unlimited
-x: file locks                      unlimited
-i: pending signals                 2061422
-q: bytes in POSIX msg queues       819200
-e: max nice                        0
-r: max rt priority                 0
-N 15: rt cpu time (microseconds)   unlimited
"""
KSH = """\
address space limit (Kibytes)  (-M)  unlimited
core file size (blocks)        (-c)  0
cpu time (seconds)             (-t)  unlimited
data size (Kibytes)            (-d)  unlimited
file size (blocks)             (-f)  unlimited
locks                          (-x)  unlimited
locked address space (Kibytes) (-l)  65536
message queue size (Kibytes)   (-q)  800
nice                           (-e)  0
nofile                         (-n)  1024
nproc                          (-u)  2061422
pipe buffer size (bytes)       (-p)  4096
stack size (Kibytes)           (-s)  8192
"""
MKSH = """\
time(cpu-seconds)    unlimited
file(blocks)         unlimited
coredump(blocks)     0
data(KiB)            unlimited
stack(KiB)           8192
lockedmem(KiB)       65536
nofiles(descriptors) 1024
processes            2061422
"""
FISH = """\
Maximum size of core files created                              (kB, -c) 0
Maximum size of a process's data segment                        (kB, -d) unlimited
Maximum size that may be locked into memory                     (kB, -l) 65536
Maximum number of open file descriptors                             (-n) 1024
Maximum stack size                                              (kB, -s) 8192
Maximum number of processes available to current user               (-u) 2061422
"""
BUSYBOX = """\
-t: cpu time (seconds)            unlimited
-f: file size (blocks)            unlimited
-d: data seg size (kb)            unlimited
-s: stack size (kb)               8192
-c: core file size (blocks)       0
-m: max memory size (kb)          unlimited
-l: max locked memory (kb)        65536
-p: processes                     2061422
-n: file descriptors              1024
"""
SHELLS = {
    "bash": BASH, "dash": DASH, "zsh": ZSH, "ksh": KSH, "mksh": MKSH, "fish": FISH,
    "busybox": BUSYBOX,
}  # fmt: skip
PROC_LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             2061422              2061422              processes 
Max open files            1024                 1048576              files     
Max locked memory         67108864             67108864             bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       2061422              2061422              signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
"""
PRLIMIT = """\
RESOURCE   DESCRIPTION                             SOFT      HARD UNITS
AS         address space limit                unlimited unlimited bytes
CORE       max core file size                         0 unlimited bytes
MEMLOCK    max locked-in-memory address space  67108864  67108864 bytes
NOFILE     max number of open files                1024   1048576 files
NPROC      max number of processes              2061422   2061422 processes
STACK      max stack size                       8388608 unlimited bytes
"""
ENV = """\
SHELL=/bin/bash
NCCL_DEBUG=INFO
WANDB_API_KEY=0123456789abcdef
PWD=/root
NCCL_IB_HCA=mlx5_0,mlx5_1
CUDA_VISIBLE_DEVICES=0,1
BASH_FUNC_module%%=() {  eval `modulecmd bash $*`
}
LD_LIBRARY_PATH=/usr/local/cuda/lib64
HF_TOKEN=hf_0000000000000000000000000000
_=/usr/bin/env
"""
NUMACTL = """\
available: 3 nodes (0-2)
node 0 cpus: 0 1 2 3
node 0 size: 515587 MB
node 0 free: 500123 MB
node 1 cpus: 4 5 6 7
node 1 size: 516086 MB
node 1 free: 0 MB
node 2 cpus:
node 2 size: 97280 MB
node 2 free: 97000 MB
node distances:
node   0   1   2 
  0:  10  20  80 
  1:  20  10  80 
  2:  80  80  10 
"""
SYSCTL = """\
fs.nr_open = 1048576
sysctl: permission denied on key 'fs.protected_fifos'
kernel.numa_balancing = 1
net.core.default_qdisc = fq_codel
net.core.somaxconn=4096
net.ipv4.tcp_rmem = 4096\t131072\t6291456
sysctl: reading key "net.ipv6.conf.all.stable_secret"
vm.swappiness = 60
"""

SOFTWARE: dict[str, tuple[str, ...]] = {
    "pip-freeze": (PIP_FREEZE,),
    "pip-list": LISTS,
    "conda-list": CONDA_LISTS,
    "proc-limits": (PROC_LIMITS,),
    "prlimit": (PRLIMIT,),
    "env": (ENV,),
    "collect-env": (COLLECT_ENV_OLD, COLLECT_ENV_CPU, COLLECT_ENV_ROCM, COLLECT_ENV_VLLM),
    "sglang-env": (SGLANG_VM,),
    "ds-report": (DS_REPORT, DS_REPORT_ROCM),
    "hf-env": (TRANSFORMERS_ENV, ACCELERATE_ENV),
    "lightning-env": (LIGHTNING_ENV,),
    "ulimit": tuple(SHELLS.values()),
    "ulimit-hard": (BASH,),
    "sysctl": (SYSCTL,),
    "numactl": (NUMACTL,),
}

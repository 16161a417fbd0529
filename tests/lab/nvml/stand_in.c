/* A stand-in for libnvidia-ml.so.1: eight busy H100, or what NVML_STAND_IN says, words apart:
 *
 *   8            so many GPUs
 *   3:lost@2     GPU 3 answers NVML_ERROR_GPU_IS_LOST from 2 s on (after its handle was given out)
 *   5:hang@2     GPU 5 never returns from a call made after 2 s
 *   5:frozen@2=D the same in uninterruptible sleep: it makes a file in the frozen directory D
 *   2:crash@1    the process that asks GPU 2 is ended by a signal
 *   1:brake      held back by the power brake;  1:hot  by heat;  1:locked  by an operator's clocks
 *   4:idle       does nothing
 *   6:weak       draws less and is slower than the others
 *   6:ecc@2      an uncorrected error at 2 s;  7:link@2  an NVLink recovery;  0:replays@2  PCIe
 *   mismatch     the library and the driver are of two versions
 *
 * Compiled with -DOLD the functions that older drivers lack are missing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int ret;
enum { OK, UNINITIALIZED, INVALID, NOT_SUPPORTED, LOST = 15, MISMATCH = 18 };
typedef struct { unsigned fan; unsigned rest; } two;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct {
    char old_id[16]; unsigned domain, bus, device, pci_id, subsystem; char id[32];
} pci;
typedef struct {
    unsigned field, scope; long long timestamp, latency; unsigned type; ret result;
    union { double d; unsigned u; unsigned long ul; unsigned long long ull; } value;
} field;

static double began;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* Whether `gpu:what` is said and its time has come; `rest` points behind it. */
static int said(long gpu, const char *what, const char **rest)
{
    char word[64];
    const char *script = getenv("NVML_STAND_IN"), *at;
    snprintf(word, sizeof word, "%ld:%s", gpu, what);
    at = script ? strstr(script, word) : 0;
    if (!at) return 0;
    at += strlen(word);
    if (rest) *rest = strchr(at, '=');
    return *at != '@' || now() - began >= atof(at + 1);
}

static ret alive(void *handle)
{
    long gpu = (long)handle - 1;
    const char *rest;
    char path[1024];
    if (said(gpu, "lost", 0)) return LOST;
    if (said(gpu, "crash", 0)) raise(SIGSEGV);
    if (said(gpu, "hang", 0)) for (;;) pause();
    if (said(gpu, "frozen", &rest) && rest) {
        snprintf(path, sizeof path, "%.*s/gpu%ld", (int)strcspn(rest + 1, " "), rest + 1, gpu);
        open(path, O_CREAT | O_WRONLY, 0600);
    }
    return OK;
}

#define ALIVE ret r = alive(d); long gpu = (long)d - 1; (void)gpu; if (r) return r

ret nvmlInitWithFlags(unsigned flags)
{
    const char *script = getenv("NVML_STAND_IN");
    began = now();
    return script && strstr(script, "mismatch") ? MISMATCH : OK;
}
ret nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
ret nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(ret r) { return r == MISMATCH ? "Driver/library version mismatch" : "an error"; }
ret nvmlDeviceGetCount_v2(unsigned *n)
{
    const char *script = getenv("NVML_STAND_IN");
    int told = script ? atoi(script) : 0;
    *n = script && *script >= '0' && *script <= '9' && script[1] != ':' ? told : 8;
    puts("a line that a library prints to standard output");
    fflush(stdout);
    return OK;
}
ret nvmlSystemGetDriverVersion(char *v, unsigned n) { snprintf(v, n, "535.161.08"); return OK; }
ret nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)((long)i + 1); return OK; }
ret nvmlDeviceGetPciInfo_v3(void *d, pci *p)
{
    ALIVE;
    memset(p, 0, sizeof *p);
    snprintf(p->id, sizeof p->id, "00000000:%02lX:00.0", 0x10 + gpu);
    return OK;
}
ret nvmlDeviceGetName(void *d, char *v, unsigned n) { ALIVE; snprintf(v, n, "NVIDIA H100 80GB HBM3"); return OK; }
ret nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *v) { ALIVE; *v = kind == 2 ? 2619 : 1980; return OK; }
ret nvmlDeviceGetTemperatureThreshold(void *d, int which, unsigned *v)
{
    static const unsigned limits[] = {92, 89, 95, 87};
    ALIVE;
    *v = limits[which & 3];
    return OK;
}
ret nvmlDeviceGetMaxPcieLinkGeneration(void *d, unsigned *v) { ALIVE; *v = 5; return OK; }
ret nvmlDeviceGetMaxPcieLinkWidth(void *d, unsigned *v) { ALIVE; *v = 16; return OK; }
ret nvmlDeviceGetCurrPcieLinkGeneration(void *d, unsigned *v) { ALIVE; *v = 5; return OK; }
ret nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *v) { ALIVE; *v = 16; return OK; }
ret nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, unsigned long long *v)
{
    ALIVE;
    *v = kind ? said(gpu, "ecc", 0) : 3;
    return OK;
}
ret nvmlDeviceGetPcieReplayCounter(void *d, unsigned *v) { ALIVE; *v = said(gpu, "replays", 0) ? 500 : 7; return OK; }
ret nvmlDeviceGetNvLinkState(void *d, unsigned link, int *v) { ALIVE; *v = 1; return link < 18 ? OK : INVALID; }
ret nvmlDeviceGetNvLinkErrorCounter(void *d, unsigned link, int counter, unsigned long long *v)
{
    ALIVE;
    *v = counter == 1 && link == 4 && said(gpu, "link", 0);
    return OK;
}
static unsigned clock_of(long gpu)
{
    if (said(gpu, "brake", 0)) return 345;
    if (said(gpu, "locked", 0)) return 700;
    if (said(gpu, "hot", 0)) return 1200;
    if (said(gpu, "weak", 0)) return 1300;
    return said(gpu, "idle", 0) ? 345 : 1755 + 5 * (gpu % 3);
}
static unsigned temperature(long gpu) { return said(gpu, "hot", 0) ? 88 : said(gpu, "idle", 0) ? 33 : 60 + gpu % 4; }
static unsigned long long reasons(long gpu)
{
    if (said(gpu, "brake", 0)) return 0x8 | 0x80 | 0x4;
    if (said(gpu, "hot", 0)) return 0x8 | 0x40 | 0x20;
    if (said(gpu, "locked", 0)) return 0x2;
    return said(gpu, "idle", 0) ? 0x1 : 0x4;
}
ret nvmlDeviceGetFieldValues(void *d, int n, field *f)
{
    ALIVE;
    for (int i = 0; i < n; i++) {
        f[i].result = NOT_SUPPORTED;
        if (f[i].field == 82) { f[i].result = OK; f[i].type = 1; f[i].value.u = 70 + gpu % 3; }
        if (f[i].field == 138 || f[i].field == 139) { f[i].result = OK; f[i].type = 3; f[i].value.ull = (unsigned long long)(now() * 1e7); }
    }
    return OK;
}
ret nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *v) { ALIVE; *v = reasons(gpu); return OK; }
ret nvmlDeviceGetClockInfo(void *d, int kind, unsigned *v) { ALIVE; *v = kind == 2 ? 2619 : clock_of(gpu); return OK; }
ret nvmlDeviceGetPowerUsage(void *d, unsigned *v)
{
    ALIVE;
    *v = said(gpu, "idle", 0) ? 70000 : said(gpu, "brake", 0) ? 190000 : said(gpu, "weak", 0) ? 480000 : 690000 + 1000 * gpu;
    return OK;
}
ret nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *v) { ALIVE; *v = 700000; return OK; }
ret nvmlDeviceGetTemperature(void *d, int sensor, unsigned *v) { ALIVE; *v = temperature(gpu); return OK; }
ret nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *v) { ALIVE; (void)v; *n = 0; return OK; }
ret nvmlDeviceGetUtilizationRates(void *d, two *v) { ALIVE; v->fan = said(gpu, "idle", 0) ? 0 : 99; v->rest = 40; return OK; }
ret nvmlDeviceGetMemoryInfo(void *d, memory *v) { ALIVE; v->total = 85520809984ULL; v->used = 70000000000ULL; v->free = v->total - v->used; return OK; }
ret nvmlDeviceGetPerformanceState(void *d, int *v) { ALIVE; *v = 0; return OK; }
ret nvmlDeviceGetPcieThroughput(void *d, int direction, unsigned *v) { ALIVE; *v = 1500000; return OK; }
#ifndef OLD
ret nvmlDeviceGetCurrentClocksEventReasons(void *d, unsigned long long *v) { ALIVE; *v = reasons(gpu); return OK; }
ret nvmlDeviceGetMarginTemperature(void *d, unsigned *v) { ALIVE; v[1] = 89 - temperature(gpu); return OK; }
#endif

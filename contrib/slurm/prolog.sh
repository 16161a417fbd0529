#!/bin/sh
# Prolog for Slurm: a job does not start on a node whose GPUs fail.
#
# A check that fails ends this with 1: Slurm then drains the node, with the reason "Prolog error",
# and puts the job back into the queue, held (SchedulerParameters=nohold_on_prolog_fail: not held).
# Anything else ends it with 0, for a Prolog that fails for another reason would drain healthy nodes:
# preflight could not determine something (3), could not start (2), is not installed (127), took too
# long (124, 137), has a bug (70), or ended with 1 without its verdict: so does a Python that does
# not find it. That is logged.
#
# To install, on every node as root:
#   cp prolog.sh /etc/slurm/preflight-prolog.sh && chmod 755 /etc/slurm/preflight-prolog.sh
#   in slurm.conf:  Prolog=/etc/slurm/preflight-prolog.sh
#                   PrologFlags=Alloc          (run it when the job starts, not at its first step)
#   then:           scontrol reconfigure
# Where you have a Prolog already, name both by a pattern: Prolog=/etc/slurm/prolog.d/*
# Without PrologFlags=Alloc it should take less than MessageTimeout, which is 10 s unless set.
#
# Settings are below. A file preflight.conf beside this script overrides them (VARIABLE=value).

PREFLIGHT=preflight              # the command; its path where it is not in PATH below
PREFLIGHT_ARGS="gpu-health"      # what is asked; level quick is passive and takes seconds
PREFLIGHT_LIMIT_S=30             # must be less than PrologEpilogTimeout, by 15 at least
PREFLIGHT_LOG=                   # a file; empty: syslog, by logger
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck disable=SC1091
if [ -r "$here/preflight.conf" ]; then . "$here/preflight.conf"; fi

log() {
    message="job ${SLURM_JOB_ID:-?} node ${SLURMD_NODENAME:-$(uname -n)}: $1"
    if [ -n "$PREFLIGHT_LOG" ]; then
        echo "$(date '+%Y-%m-%dT%H:%M:%S') preflight prolog: $message" >>"$PREFLIGHT_LOG"
    else
        logger -t preflight-prolog -p daemon.warning -- "$message" </dev/null
    fi
}

# Into a file and not a pipe: a process that not even SIGKILL ends would hold a pipe open. For the
# same reason two timeouts: the inner one waits for ever for such a process, the outer one does not.
report=$(mktemp 2>/dev/null) || report=$(mktemp -p /dev/shm 2>/dev/null) || report=/dev/null
set -f  # a pattern of --only is none of file names
# shellcheck disable=SC2086
timeout -k 2 $((PREFLIGHT_LIMIT_S + 5)) timeout -k 2 "$PREFLIGHT_LIMIT_S" \
    "$PREFLIGHT" $PREFLIGHT_ARGS --host-timeout "$((PREFLIGHT_LIMIT_S * 4 / 5))s" --color never \
    --format text </dev/null >"$report" 2>&1
status=$?
failed=
verdict=
if [ "$report" != /dev/null ]; then
    failed=$(awk '$1 == "FAIL" { printf "%s%s %s", sep, $2, $3; sep = ", " }' "$report" |
        tr -c 'A-Za-z0-9 .,:_/[]()+-' _ | cut -c 1-200)
    # An uncaught error in Python ends with 1 too: only preflight's own last line tells a failure.
    verdict=$(grep -m 1 -E '^(FAIL|WARN): [0-9,]+ failed, ' "$report")  # WARN ends with 1: --strict
    last=$(tail -n 1 "$report" | tr -c 'A-Za-z0-9 .,:_/[]()+-' _ | cut -c 1-200)
    rm -f "$report"
fi

case $status in
0) exit 0 ;;
1)
    if [ -n "$verdict" ]; then
        log "FAIL, the node is drained: ${failed:-$verdict}"
        exit 1
    fi
    log "let through: exit status 1 without a verdict of preflight: ${last:-nothing said}"
    ;;
124 | 137) log "let through: no answer within $PREFLIGHT_LIMIT_S s" ;;
*) log "let through: exit status $status: ${last:-nothing said}" ;;
esac
exit 0

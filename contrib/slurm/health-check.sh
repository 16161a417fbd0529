#!/bin/sh
# HealthCheckProgram for Slurm: tells which nodes should be drained, and drains them if you say so.
#
# Where a check fails it logs and prints the line that drains this node, with the reason. It types
# that line itself only where PREFLIGHT_DRAIN=yes. It leaves a node alone that is drained or down
# already, whoever did that, and it never brings one back: resume is for a person, after the repair.
# What could not be determined, or took too long, is logged and drains nothing. The end is always 0.
#
# To install, on every node as root:
#   cp health-check.sh /etc/slurm/preflight-health-check.sh
#   chmod 755 /etc/slurm/preflight-health-check.sh
#   in slurm.conf:  HealthCheckProgram=/etc/slurm/preflight-health-check.sh
#                   HealthCheckInterval=300
#                   HealthCheckNodeState=ANY   (CYCLE as well, on a large cluster)
#   then:           scontrol reconfigure
# Look at the log for a day before you set PREFLIGHT_DRAIN=yes.
#
# Slurm ends a HealthCheckProgram after 60 s. Settings are below. A file preflight.conf beside this
# script overrides them (VARIABLE=value).

PREFLIGHT=preflight              # the command; its path where it is not in PATH below
PREFLIGHT_ARGS="gpu-health"      # what is asked; level quick is passive, safe beside a job
PREFLIGHT_LIMIT_S=40
PREFLIGHT_LOG=                   # a file; empty: syslog, by logger
PREFLIGHT_DRAIN=${PREFLIGHT_DRAIN:-no}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck disable=SC1091
if [ -r "$here/preflight.conf" ]; then . "$here/preflight.conf"; fi

# Slurm calls a node by its NodeName, which need not be the name of the host.
node=${SLURMD_NODENAME:-}
if [ -z "$node" ]; then node=$(scontrol show aliases "$(hostname -s)" 2>/dev/null | head -n 1); fi
if [ -z "$node" ]; then node=$(hostname -s); fi

log() {
    if [ -n "$PREFLIGHT_LOG" ]; then
        echo "$(date '+%Y-%m-%dT%H:%M:%S') preflight health check: node $node: $1" >>"$PREFLIGHT_LOG"
    else
        logger -t preflight-health-check -p daemon.warning -- "node $node: $1" </dev/null
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
last=
if [ "$report" != /dev/null ]; then
    failed=$(awk '$1 == "FAIL" { printf "%s%s %s", sep, $2, $3; sep = ", " }' "$report" |
        tr -c 'A-Za-z0-9 .,:_/[]()+-' _ | cut -c 1-100)
    # An uncaught error in Python ends with 1 too: only preflight's own last line tells a failure.
    verdict=$(grep -m 1 -E '^(FAIL|WARN): [0-9,]+ failed, ' "$report")  # WARN ends with 1: --strict
    last=$(tail -n 1 "$report" | tr -c 'A-Za-z0-9 .,:_/[]()+-' _ | cut -c 1-200)
    rm -f "$report"
fi

case $status in
0) exit 0 ;;
1)
    if [ -z "$verdict" ]; then
        log "not determined: exit status 1 without a verdict of preflight: ${last:-nothing said}"
        exit 0
    fi
    ;;
124 | 137)
    log "not determined: no answer within $PREFLIGHT_LIMIT_S s"
    exit 0
    ;;
*)
    log "not determined: exit status $status: ${last:-nothing said}"
    exit 0
    ;;
esac

reason="preflight: ${failed:-a check failed}"
line="scontrol update nodename=$node state=drain reason=\"$reason\""

# What one of Slurm's tools says, of either stream, on one line; its status is the tool's.
slurm() {
    words=$(timeout -k 2 10 "$@" </dev/null 2>&1)
    ended=$?
    printf '%s' "$words" | tr '\n' ' ' | cut -c 1-300
    return $ended
}

told=$(slurm sinfo -h -N -n "$node" -o 'state=%T')
case $told in
*state=*)
    state=${told##*state=}
    state=${state%% *}
    ;;
*)
    # PATH or SLURM_CONF is wrong here, or slurmctld is away: then scontrol would not reach it either.
    log "FAIL, left alone, for sinfo failed: ${told:-it shows no node $node}: $line"
    echo "$line"
    exit 0
    ;;
esac
case $state in
drain* | down* | fail* | error* | inval* | unknown*)
    log "FAIL, left alone, its state is $state: $reason"
    exit 0
    ;;
esac

log "FAIL: $line"
echo "$line"
if [ "$PREFLIGHT_DRAIN" = yes ]; then
    if told=$(slurm scontrol update nodename="$node" state=drain reason="$reason"); then
        log "drained"
    else
        log "could not be drained, scontrol failed: $told"
    fi
fi
exit 0

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
report=$(mktemp 2>/dev/null) || report=/dev/null
set -f  # a pattern of --only is none of file names
# shellcheck disable=SC2086
timeout -k 2 $((PREFLIGHT_LIMIT_S + 5)) timeout -k 2 "$PREFLIGHT_LIMIT_S" \
    "$PREFLIGHT" $PREFLIGHT_ARGS --host-timeout "$((PREFLIGHT_LIMIT_S * 4 / 5))s" --color never \
    </dev/null >"$report" 2>&1
status=$?
failed=
if [ "$report" != /dev/null ]; then
    failed=$(awk '$1 == "FAIL" { printf "%s%s %s", sep, $2, $3; sep = ", " }' "$report" |
        tr -c 'A-Za-z0-9 .,:_/[]()+-' _ | cut -c 1-100)
    rm -f "$report"
fi

case $status in
0) exit 0 ;;
1) ;;
124 | 137)
    log "not determined: no answer within $PREFLIGHT_LIMIT_S s"
    exit 0
    ;;
*)
    log "not determined: exit status $status"
    exit 0
    ;;
esac

reason="preflight: ${failed:-a check failed}"
state=$(timeout -k 2 10 sinfo -h -N -n "$node" -o %T </dev/null 2>/dev/null | head -n 1)
case $state in
drain* | down* | fail* | error* | inval* | unknown* | "")
    log "FAIL, left alone, its state is ${state:-not known}: $reason"
    exit 0
    ;;
esac

line="scontrol update nodename=$node state=drain reason=\"$reason\""
log "FAIL: $line"
echo "$line"
if [ "$PREFLIGHT_DRAIN" = yes ]; then
    if timeout -k 2 10 scontrol update nodename="$node" state=drain reason="$reason" </dev/null; then
        log "drained"
    else
        log "could not be drained: scontrol ended with $?"
    fi
fi
exit 0

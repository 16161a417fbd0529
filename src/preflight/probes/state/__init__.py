"""The state of the machine around a run: control groups, memory, processors, clock, disks."""

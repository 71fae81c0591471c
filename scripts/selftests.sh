# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: the test programs, in the order in which they run. The cheapest come first.
# shellcheck disable=SC2034
selftests=(
	bad_ioctl
	bad_fields
	access_rights
	channel_flush
	channel_read
	channel_clocks
	channel_full
	channel_nested
	channel_torture
	channel_models
	channel_mmap
	channel_splice
	channel_lent
	channel_order
	channel_hotplug
	channel_rounds
	kernel_api
	fault_injection
	inject_len
	inject_fork_storm
	counter_hardware
	counter_basic
	counter_errors
	counter_requests
	counter_rights
	counter_work
	counter_tasks
	counter_inherited
	counter_sets
	counter_reads
	counter_control
	counter_samples
	counter_hotplug
	counter_kernel
	counter_kernel_stress
	stat_names
	stat_agrees
	samples
	module_reload
)
# Those that may say how many instructions something takes, where the machine is one that makes that certain.
# shellcheck disable=SC2034
counting_selftests=(counter_hardware)

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the installed tests beside this file and prints KTAP: 0 all passed, 1 one failed. A test that
# cannot run here says so and is skipped; WEIR_KO and WEIR_TORTURE_KO name the modules for those that
# need their files.
cd "$(dirname "$0")" || exit 1

echo "KTAP version 1"
echo "1..$(wc -l <kselftest-list.txt)"
number=0
failed=0
while read -r program; do
	number=$((number + 1))
	"./$program" </dev/null
	case $? in
	0) echo "ok $number $program" ;;
	4) echo "ok $number $program # SKIP" ;;
	*)
		echo "not ok $number $program"
		failed=1
		;;
	esac
done <kselftest-list.txt
exit $failed

// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a channel of a kernel module from C, with nothing but weir's header: prints the switches
 * that samples/c/weir_switches.c writes, 20 of them, or as many as are asked for.
 *
 *	cc -I rust/include/uapi -I samples/c ... -o print_switches
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/weir.h>
#include "weir_switches.h"

#define PAGE	65536	/* the largest that a channel may have */

/* Prints what is in one page, up to `left` switches. Returns how many there were. */
static long print_page(const unsigned char *page, long left)
{
	struct weir_page_header header;
	struct weir_event event;
	struct weir_switch change;
	size_t at, end;
	long printed = 0;

	memcpy(&header, page, sizeof(header));
	end = header.content_size / 8;
	for (at = sizeof(header); at < end && printed < left; at += event.header.size) {
		memcpy(&event, page + at, sizeof(event.header));
		/* Another type, such as the NOP of a record that was given up, is skipped. */
		if (event.header.type != WEIR_RECORD_EVENT)
			continue;
		memcpy(&event, page + at, sizeof(event));
		memcpy(&change, page + at + sizeof(event), sizeof(change));
		printf("%llu.%09llu cpu %u: %d -> %d (%.16s)\n",
		       (unsigned long long)event.time / 1000000000,
		       (unsigned long long)event.time % 1000000000,
		       event.header.misc, change.prev_pid, change.next_pid, change.next_comm);
		printed++;
	}
	return printed;
}

int main(int argc, char **argv)
{
	struct weir_attach_req attach = { .size = sizeof(attach), .name = "weir_switches" };
	struct weir_layout_req layout = { .size = sizeof(layout) };
	static unsigned char buffer[16 * PAGE];
	long left = argc > 1 ? atol(argv[1]) : 20;
	int fd = open("/dev/weir", O_RDONLY);
	ssize_t bytes, at;

	if (fd < 0) {
		fprintf(stderr, "/dev/weir: %s: load weir.ko\n", strerror(errno));
		return 1;
	}
	if (ioctl(fd, WEIR_IOC_CHANNEL_ATTACH, &attach)) {
		fprintf(stderr, "weir_switches: %s: load samples/c/weir_switches.ko\n",
			strerror(errno));
		return 1;
	}
	if (ioctl(fd, WEIR_IOC_CHANNEL_LAYOUT, &layout)) {
		perror("WEIR_IOC_CHANNEL_LAYOUT");
		return 1;
	}
	while (left > 0) {
		bytes = read(fd, buffer, sizeof(buffer));
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0) {
			perror("read");
			return 1;
		}
		/* The module was unloaded. */
		if (bytes == 0)
			break;
		for (at = 0; at < bytes && left > 0; at += layout.page_size)
			left -= print_page(buffer + at, left);
	}
	return 0;
}

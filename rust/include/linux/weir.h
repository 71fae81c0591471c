/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Weir: the interface for other kernel modules. The functions are exported for GPL modules; a
 * module that calls them is built with KBUILD_EXTRA_SYMBOLS pointing at weir's Module.symvers.
 */
#ifndef _LINUX_WEIR_H
#define _LINUX_WEIR_H

#include <linux/types.h>

struct weir_channel;

/**
 * weir_channel_get() - Take a reference on the channel of a file descriptor.
 * @fd: A descriptor of the calling process, on which WEIR_IOC_CHANNEL_CREATE succeeded.
 *
 * The channel can be written to until weir_channel_put(), also after the descriptor is closed; what
 * is written then is read by nobody.
 *
 * Context: Process context. Does not sleep.
 * Return: The channel, or an error pointer: -EBADF (no such descriptor), -EINVAL (not weir's),
 * -EBADFD (it has no channel yet).
 */
struct weir_channel *weir_channel_get(int fd);

/**
 * weir_channel_put() - Give a reference back.
 * @channel: From weir_channel_get(). No call with it may be running or follow.
 *
 * Context: Process context. May sleep.
 */
void weir_channel_put(struct weir_channel *channel);

/**
 * weir_channel_write() - Write bytes as one WEIR_RECORD_RAW.
 * @channel: The channel.
 * @data: What to write.
 * @len: Number of bytes.
 *
 * Context: Any, NMI included. Takes no lock and allocates nothing.
 * Return: 0, or, with the record counted as lost, -ENOSPC (no free page), -EDEADLK (nested too
 * deep), -EMSGSIZE (larger than a page takes).
 */
int weir_channel_write(struct weir_channel *channel, const void *data, size_t len);

#endif /* _LINUX_WEIR_H */

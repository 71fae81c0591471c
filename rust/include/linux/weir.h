/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Weir: the interface for other kernel modules. The functions are exported for GPL modules; a
 * module that calls them is built with KBUILD_EXTRA_SYMBOLS pointing at weir's Module.symvers.
 */
#ifndef _LINUX_WEIR_H
#define _LINUX_WEIR_H

#include <linux/types.h>
#include <uapi/linux/weir.h>

struct weir_channel;

/**
 * weir_channel_create() - Create a channel of the kernel's own.
 * @name: What user space calls it in WEIR_IOC_CHANNEL_ATTACH: 1 to WEIR_NAME_LEN - 1 bytes.
 * @options: As for WEIR_IOC_CHANNEL_CREATE; what was taken is written back. NULL takes the default
 *           of everything, which is the model paged, the mode discard and CLOCK_MONOTONIC.
 *
 * It can be written to until weir_channel_destroy(), whether anybody reads or not. Its memory
 * counts for nobody's limit.
 *
 * Context: Process context. Sleeps.
 * Return: The channel, or an error pointer: -EINVAL (name, options), -EEXIST (there is one of this
 * name), -EOPNOTSUPP (no stable TSC), -ENOMEM, -EINTR.
 */
struct weir_channel *weir_channel_create(const char *name, struct weir_channel_req *options);

/**
 * weir_channel_destroy() - Give up a channel of weir_channel_create().
 * @channel: The channel. No call with it may be running or follow.
 *
 * What was written stays for whoever has attached it, who finds the end behind it.
 *
 * Context: Process context. Sleeps.
 */
void weir_channel_destroy(struct weir_channel *channel);

/**
 * struct weir_reservation - Room for one record.
 * @opaque: Weir's own.
 *
 * It belongs to the context that reserved, and must end there by weir_channel_commit() or
 * weir_channel_discard(): preemption is off in between.
 */
struct weir_reservation {
	u64 opaque[4];
};

/**
 * DEFINE_WEIR_RESERVATION() - Declare a reservation on the stack.
 * @name: Its name.
 *
 * weir_channel_reserve() fills it, so it is not initialised, as other variables may be by the
 * compiler: that would add a tenth to what a record costs.
 */
#define DEFINE_WEIR_RESERVATION(name) struct weir_reservation name __uninitialized

/**
 * weir_channel_reserve() - Reserve room for one WEIR_RECORD_EVENT.
 * @channel: The channel.
 * @reservation: Where to remember it, usually on the stack.
 * @len: Bytes that the caller will write. They are rounded up to a multiple of 8.
 *
 * Context: Any, NMI included. Takes no lock and allocates nothing. On success preemption is off
 * until the reservation is committed or discarded, which must be soon, and must not sleep in
 * between.
 * Return: Where to write, 8-byte aligned, or an error pointer, with the record counted as lost:
 * -ENOSPC (no free page), -EDEADLK (nested too deep), -EMSGSIZE (larger than a page takes).
 */
void *weir_channel_reserve(struct weir_channel *channel, struct weir_reservation *reservation,
			   size_t len);

/**
 * weir_channel_commit() - End a record as it was written.
 * @reservation: From weir_channel_reserve(), in the same context. It is used up.
 *
 * Context: That of the reservation.
 */
void weir_channel_commit(struct weir_reservation *reservation);

/**
 * weir_channel_discard() - End a record that is not wanted any more.
 * @reservation: From weir_channel_reserve(), in the same context. It is used up.
 *
 * Its room stays empty; it does not count as lost.
 *
 * Context: That of the reservation.
 */
void weir_channel_discard(struct weir_reservation *reservation);

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

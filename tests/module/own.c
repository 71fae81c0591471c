// SPDX-License-Identifier: GPL-2.0
/*
 * A channel of this module's own, which user space attaches by its name.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/weir.h>

#include "torture.h"

/**
 * torture_own_create() - Create the channel of an open file.
 * @own: Where to keep it.
 * @request: Name and options.
 *
 * Context: Process context; the caller holds what guards @own.
 * Return: 0, -EBUSY if there is one, or what weir_channel_create() gives.
 */
int torture_own_create(struct weir_channel **own, struct weir_torture_create *request)
{
	struct weir_channel_req options = {
		.model = request->model,
		.mode = request->mode,
		.page_size = request->page_size,
		.pages = request->pages,
		.watermark = request->watermark,
		.max_latency_ns = request->max_latency_ns,
		.clock = request->clock,
	};
	struct weir_channel *channel;

	if (*own)
		return -EBUSY;
	if (request->reserved)
		return -EINVAL;
	if (strnlen(request->name, sizeof(request->name)) == sizeof(request->name))
		return -EINVAL;
	channel = weir_channel_create(request->name, &options);
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	*own = channel;
	request->pages = options.pages;
	return 0;
}

/**
 * torture_own_destroy() - Destroy the channel of an open file, if there is one.
 * @own: Where it is kept.
 *
 * Context: Process context; the caller holds what guards @own. Sleeps.
 */
void torture_own_destroy(struct weir_channel **own)
{
	if (*own)
		weir_channel_destroy(*own);
	*own = NULL;
}

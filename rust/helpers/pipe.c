// SPDX-License-Identifier: GPL-2.0

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>

#include "helpers.h"

unsigned int weir_helper_pipe_capacity(struct pipe_inode_info *pipe)
{
	return pipe->max_usage;
}

/* Buffers that are free. There may be more in use than allowed, as the limit can be lowered. */
unsigned int weir_helper_pipe_room(struct pipe_inode_info *pipe)
{
	unsigned int used = pipe_buf_usage(pipe);

	return used < pipe->max_usage ? pipe->max_usage - used : 0;
}

void weir_helper_pipe_add(struct pipe_inode_info *pipe, struct page *page,
			  const struct pipe_buf_operations *ops, unsigned long private)
{
	*pipe_head_buf(pipe) = (struct pipe_buffer) {
		.page = page,
		.len = PAGE_SIZE,
		.ops = ops,
		.private = private,
	};
	pipe->head++;
}

void weir_helper_get_file(struct file *file)
{
	get_file(file);
}

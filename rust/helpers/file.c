// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/magic.h>

#include "helpers.h"

bool weir_helper_kiocb_nonblocking(struct kiocb *kiocb)
{
	return (kiocb->ki_filp->f_flags & O_NONBLOCK) || (kiocb->ki_flags & IOCB_NOWAIT);
}

/* What its maker calls a file that has no place in a file system; NULL for others. */
const char *weir_helper_anonymous_inode_name(struct file *file)
{
	return file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC ?
	       (const char *)file->f_path.dentry->d_name.name : NULL;
}

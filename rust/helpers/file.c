// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>

#include "helpers.h"

bool weir_helper_kiocb_nonblocking(struct kiocb *kiocb)
{
	return (kiocb->ki_filp->f_flags & O_NONBLOCK) || (kiocb->ki_flags & IOCB_NOWAIT);
}

// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>

#include "helpers.h"

const struct cred *weir_helper_override_with_kernel_cred(void)
{
	return override_creds(kernel_cred());
}

void weir_helper_revert_creds(const struct cred *cred)
{
	revert_creds(cred);
}

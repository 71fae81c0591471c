// SPDX-License-Identifier: GPL-2.0

#include <linux/gfp.h>
#include <linux/mm.h>

#include "helpers.h"

void *weir_helper_page_address(struct page *page)
{
	return page_address(page);
}

void weir_helper_free_pages(struct page *page, unsigned int order)
{
	__free_pages(page, order);
}

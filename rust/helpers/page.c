// SPDX-License-Identifier: GPL-2.0

#include <linux/gfp.h>
#include <linux/mm.h>

#include "helpers.h"

/* The size is the user's: what cannot be had is an error, and nobody is warned or killed for it. */
struct page *weir_helper_alloc_pages(int node, unsigned int order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY | __GFP_COMP;

	return alloc_pages_node(node, gfp, order);
}

void *weir_helper_page_address(struct page *page)
{
	return page_address(page);
}

void weir_helper_free_pages(struct page *page, unsigned int order)
{
	__free_pages(page, order);
}

void weir_helper_get_page(struct page *page)
{
	get_page(page);
}

bool weir_helper_try_get_page(struct page *page)
{
	return try_get_page(page);
}

void weir_helper_put_page(struct page *page)
{
	put_page(page);
}

/* Whether there are references to a page besides the first; of a large one, to any part of it. */
notrace bool weir_helper_page_is_held(struct page *page)
{
	return atomic_read_acquire(&page->_refcount) != 1;
}

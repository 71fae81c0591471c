// SPDX-License-Identifier: GPL-2.0
/*
 * A KUnit suite with a test that passes, one that is skipped, one with several values, and one that
 * fails if the parameter says so, so that it can be tested that results are counted.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static bool fail;
module_param(fail, bool, 0);
MODULE_PARM_DESC(fail, "have one test fail");

static void provoke_passes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1 + 1, 2);
}

static void provoke_skips(struct kunit *test)
{
	kunit_skip(test, "for the sake of it");
}

static const int values[] = { 1, 2, 3 };
KUNIT_ARRAY_PARAM(value, values, NULL);

static void provoke_values(struct kunit *test)
{
	const int *value = test->param_value;

	KUNIT_EXPECT_GT(test, *value, 0);
}

static void provoke_may_fail(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, fail);
}

static struct kunit_case provoke_cases[] = {
	KUNIT_CASE(provoke_passes),
	KUNIT_CASE(provoke_skips),
	KUNIT_CASE_PARAM(provoke_values, value_gen_params),
	KUNIT_CASE(provoke_may_fail),
	{}
};

static struct kunit_suite provoke_suite = {
	.name = "provoke",
	.test_cases = provoke_cases,
};
kunit_test_suite(provoke_suite);

MODULE_DESCRIPTION("A KUnit suite for the tests of the test runner");
MODULE_LICENSE("GPL");

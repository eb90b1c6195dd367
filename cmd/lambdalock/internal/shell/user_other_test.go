//go:build !unix

package shell_test

const userVariable = "LAMBDALOCK_TEST_USER"

func asOtherUser() {}

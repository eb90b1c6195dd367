//go:build !unix

package main

import "os/exec"

func detach(*exec.Cmd) {}

const userVariable = "LAMBDALOCK_TEST_USER"

func asOtherUser() {}

func dontIgnoreSignals() {}

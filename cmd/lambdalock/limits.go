package main

import "fmt"

const (
	// maxEnvironments is the concurrency of an AWS account, unless it is raised; see
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html.
	maxEnvironments = 1000
	maxDeliveries   = 1_000_000

	// What the command itself has open, and what each environment and each of its
	// concurrent invocations adds: Runtime API, output, lock table, and while a
	// process starts the pipes of os/exec.
	filesOwn, filesEnvironment, filesInvocation = 64, 8, 4
)

// checkSize refuses what would end in the middle for want of files or memory. limit is
// how many files may be open.
func (c *invokeCmd) checkSize(limit uint64) error {
	if c.Environments > maxEnvironments {
		return fmt.Errorf("-n %d: at most %d environments, as many as a new AWS account may run", c.Environments, maxEnvironments)
	}
	each := uint64(filesEnvironment + filesInvocation*min(c.Concurrency, maxDeliveries))
	if most := (max(limit, filesOwn) - filesOwn) / each; uint64(c.Environments) > most {
		return fmt.Errorf("-n %d --concurrency %d: at most %d environments of this concurrency, because %d files may be open (ulimit -n)",
			c.Environments, c.Concurrency, most, limit)
	}
	if most := maxDeliveries / len(c.Events); c.Copies > most {
		return fmt.Errorf("-c %d: at most %d copies of %d events", c.Copies, most, len(c.Events))
	}
	return nil
}

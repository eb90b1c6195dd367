package invoke

import "fmt"

const (
	// maxEnvironments is the concurrency of an AWS account, unless it is raised;
	// see https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html.
	maxEnvironments = 1000
	maxDeliveries   = 1_000_000

	// The files that are open: the command's own; those of an environment (Runtime
	// API, output, lock table, and what os/exec opens while a process starts); and
	// those of each concurrent invocation in it.
	ownFiles, environmentFiles, invocationFiles = 64, 8, 4
)

// checkSize refuses a run that would run out of files or memory half-way.
// maxFiles is how many files may be open.
func (c *Command) checkSize(maxFiles uint64) error {
	if c.Environments > maxEnvironments {
		return fmt.Errorf("-n %d: at most %d environments, as many as a new AWS account may run", c.Environments, maxEnvironments)
	}
	each := uint64(environmentFiles + invocationFiles*min(c.Concurrency, maxDeliveries))
	if most := (max(maxFiles, ownFiles) - ownFiles) / each; uint64(c.Environments) > most {
		return fmt.Errorf("-n %d --concurrency %d: at most %d environments of this concurrency, because this process may open %d files; raise that with ulimit -n",
			c.Environments, c.Concurrency, most, maxFiles)
	}
	return c.checkCopies(len(c.Events), "event")
}

// checkCopies refuses more copies of so many events, messages or records than
// there may be deliveries.
func (c *Command) checkCopies(n int, noun string) error {
	if most := maxDeliveries / n; c.Copies > most {
		return fmt.Errorf("-c %d: at most %d copies of %s", c.Copies, most, plural(n, noun))
	}
	return nil
}

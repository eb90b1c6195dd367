package operate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"

	"golang.org/x/term"
)

// confirmation asks before a command changes a row.
type confirmation struct {
	Yes bool `short:"y" help:"Do not ask."`
}

var errNoTerminal = wrongUse("nobody can be asked, because standard input is not a terminal: add --yes if you mean it")

// confirm reports an error unless the answer is yes.
func (c confirmation) confirm(ctx context.Context, question string) error {
	if c.Yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errNoTerminal
	}
	// Standard output may be a file or a pipe, where no one sees a question.
	_, _ = fmt.Fprint(os.Stderr, question, " [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends with the program, at the latest
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-answer:
		return yes(line)
	}
}

// yes reports an error unless the line says so.
func yes(line string) error {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return no("nothing was changed since you were asked")
}

// person describes who runs this command, as the holder of a lock.
func person() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

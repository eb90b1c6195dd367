package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/doctor"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Doctor checks a store, and a deployed function.
type Doctor struct {
	console.StoreFlags
	jsonFlag
	Acknowledge []string `placeholder:"CHECK" help:"Leave out these warnings, because they do no harm here. With commas between several."`
}

// Help returns what --help adds.
func (c *Doctor) Help() string {
	return `Says what is wrong, what comes of it, what to change, and who has to. It checks the store: whether it answers and you may use it, its latency, and what it may lose; of a DynamoDB table also the key, TTL, billing, replicas, and the clock of this machine. With --function it also checks what is deployed, by the rules of the CDK construct: the variables, timeout and log level of the function and of its aliases, their queues, streams, Kafka topics and asynchronous invocations. It says what it does not look at.

"error" means that no lock can be acquired, or that two callers can hold one. "warning" means that events or locks are lost under circumstances, or that you may not do something: the store answers for your credentials, and not for those of the function. The rules do not see what the code does; --acknowledge leaves out a warning that does not apply.

On DynamoDB it changes no row. In other stores it acquires and releases the lock "lambdalock doctor" in the --namespace; a server that is compatible with S3 or Azure is probed before, which leaves five small objects.

The status is 0 if there is no error, 1 if there is one, 64 if a flag or the environment is wrong or there is no such function, and 69 if the store did not answer, or reading the function is denied.

Examples:
  lambdalock doctor                                                # the store
  lambdalock doctor --function thumbnails                          # its store, and the function
  lambdalock doctor --function thumbnails --acknowledge retention  # without that warning`
}

// Run runs the command.
func (c *Doctor) Run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what a store warns of is a line, too
	found, err := c.examine(ctx)
	if err != nil {
		return trouble(err)
	}
	found = c.acknowledge(found)
	slices.SortStableFunc(found, worstFirst)
	if err := c.print(os.Stdout, found); err != nil {
		return err
	}
	return verdict(found)
}

// worstFirst compares lines by their levels.
func worstFirst(a, b doctor.Line) int {
	levels := []doctor.Level{doctor.Error, doctor.Warning, doctor.OK}
	return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
}

// acknowledge leaves out the warnings that are acknowledged, and says which
// names are none of them: one may be misspelt, or be an error.
func (c *Doctor) acknowledge(found []doctor.Line) []doctor.Line {
	for _, check := range c.Acknowledge {
		switch i := slices.IndexFunc(found, func(l doctor.Line) bool { return l.Check == check && l.Level != doctor.OK }); {
		case i < 0:
			console.Say("--acknowledge %s leaves out nothing: there is no such warning", check)
		case !slices.ContainsFunc(found, func(l doctor.Line) bool { return l.Check == check && l.Level == doctor.Warning }):
			console.Say("--acknowledge %s leaves out nothing: it is an error, not a warning", check)
		}
	}
	return slices.DeleteFunc(found, func(l doctor.Line) bool { return l.Level == doctor.Warning && slices.Contains(c.Acknowledge, l.Check) })
}

// examine returns what is found of the store and the function.
func (c *Doctor) examine(ctx context.Context) ([]doctor.Line, error) {
	var functions []doctor.Line
	if c.Function != "" {
		all, err := c.functions(ctx)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			functions = append(functions, doctor.Function(f)...)
		}
		if c.Store == "" && all[0].Table == "" {
			return functions, nil
		}
	}
	store, err := c.Open(ctx)
	if errors.As(err, new(*driver.ConfigError)) && functions != nil {
		return append(functions, doctor.WrongTable(err)), nil
	}
	if err != nil {
		return nil, err
	}
	found, err := doctor.Store(ctx, store, c.Namespace)
	if err != nil || !doctor.Usable(found) {
		if client, table, err := storeurl.DynamoDB(ctx, c.URL()); err == nil {
			doctor.Similar(ctx, client, table, found)
		}
		return append(found, functions...), err
	}
	more, err := c.settings(ctx)
	return slices.Concat(found, more, functions), err
}

// functions reads the function and its aliases.
func (c *Doctor) functions(ctx context.Context) ([]*deployed.Function, error) {
	cfg, err := c.AWS(ctx)
	if err != nil {
		return nil, err
	}
	r := deployed.Reader{Lambda: lambda.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), Kinesis: kinesis.NewFromConfig(cfg)}
	return r.Read(ctx, c.Function)
}

// settings checks those of a table, or of the servers of Redis.
func (c *Doctor) settings(ctx context.Context) ([]doctor.Line, error) {
	url := c.URL()
	switch scheme, _, _ := strings.Cut(strings.ToLower(url), "://"); scheme {
	case "dynamodb":
		client, table, err := storeurl.DynamoDB(ctx, url)
		if err != nil {
			return nil, err
		}
		return doctor.Table(ctx, client, table), nil
	case "redis", "rediss", "valkey", "valkeys", "unix":
		clients, err := storeurl.Redis(url)
		var found []doctor.Line
		for _, client := range clients {
			found = append(found, doctor.Redis(ctx, client, client.Options().Addr)...)
		}
		return found, err
	}
	return nil, nil
}

func (c *Doctor) print(out io.Writer, found []doctor.Line) error {
	if c.JSON {
		for i := range found {
			if err := inspect.WriteJSON(out, &found[i], ""); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "LEVEL\tCHECK\tFOR\tFINDING")
	for _, l := range found {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.Level, l.Check, l.For, console.Printable(l.Text))
	}
	return t.Flush()
}

// verdict returns an error that names the checks that found one.
func verdict(found []doctor.Line) error {
	var wrong []string
	for _, l := range found {
		if l.Level == doctor.Error && !slices.Contains(wrong, l.Check) {
			wrong = append(wrong, l.Check)
		}
	}
	if len(wrong) > 0 {
		return no("not set up rightly: %s", strings.Join(wrong, ", "))
	}
	return nil
}

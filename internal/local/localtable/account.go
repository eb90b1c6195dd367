package localtable

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// Account is where this process finds its lock tables: profile, Region, endpoint and
// credentials of the AWS SDK's default configuration.
type Account struct {
	Client *dynamodb.Client
}

// renewTimeout bounds the search for new credentials when a process starts.
const renewTimeout = 10 * time.Second

// Open reads the configuration. The error says which part is missing.
func Open(ctx context.Context) (*Account, error) {
	client, err := dynamostore.OpenClient(ctx)
	if err != nil {
		return nil, err
	}
	return &Account{client}, nil
}

// Env is what a process needs in its environment to find the table of that name in
// the account, except credentials.
func (a *Account) Env(table string) []string {
	o := a.Client.Options()
	env := []string{dynamostore.TableVariable + "=" + table, "AWS_REGION=" + o.Region}
	if o.BaseEndpoint != nil {
		env = append(env, "AWS_ENDPOINT_URL_DYNAMODB="+aws.ToString(o.BaseEndpoint))
	}
	return env
}

// Credentials are the variables with which Lambda gives a process its credentials.
// They may expire, so each process should get those of its own start.
func (a *Account) Credentials() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	c, err := a.Client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return []string{
		"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken,
	}, nil
}

// Command run starts a server of package servers, runs a command with the URL
// of a store on it in the environment variable LAMBDALOCK_STORE, and ends both.
//
//	go run ./servers/run redis|s3|azure command [argument…]
//
// The environment of the command also has the credentials of the server. The
// exit status is that of the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/integration/servers"
)

const bucket = "locks" // also the name of the container

// prepare makes the bucket or container on a server and returns the environment
// of the command.
var prepare = map[string]func(context.Context, servers.Server) ([]string, error){
	"redis": func(_ context.Context, s servers.Server) ([]string, error) {
		return []string{"LAMBDALOCK_STORE=" + s.Endpoint}, nil
	},
	"s3":    prepareS3,
	"azure": prepareAzure,
}

func main() {
	if len(os.Args) < 3 || prepare[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: run redis|s3|azure command [argument…]")
		os.Exit(2)
	}
	status, err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

// run returns the exit status of the command.
func run(ctx context.Context, server, command string, args []string) (int, error) {
	s, closeServer, err := servers.Open(ctx, server)
	if err != nil {
		return 0, err
	}
	defer closeServer()
	// An interrupt from the terminal reaches the command too, and its end is what
	// ends the server.
	signal.Ignore(os.Interrupt)
	environment, err := prepare[server](ctx, s)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	fmt.Fprintf(os.Stderr, "%s at %s\n", s.Name, s.Endpoint)
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), environment...)
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func prepareS3(ctx context.Context, s servers.Server) ([]string, error) {
	client := s3.New(s3.Options{
		Region: servers.Region, BaseEndpoint: aws.String(s.Endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(servers.AccessKey, servers.SecretKey, ""),
	})
	query := url.Values{"region": {servers.Region}, "endpoint": {s.Endpoint}, "path-style": {"true"}}
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	return []string{
		"LAMBDALOCK_STORE=s3://" + bucket + "/locks?" + query.Encode(),
		"AWS_ACCESS_KEY_ID=" + servers.AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + servers.SecretKey,
	}, err
}

func prepareAzure(ctx context.Context, s servers.Server) ([]string, error) {
	account := s.Endpoint + "/" + servers.AzuriteAccount
	key, err := container.NewSharedKeyCredential(servers.AzuriteAccount, servers.AzuriteKey)
	if err != nil {
		return nil, err
	}
	client, err := container.NewClientWithSharedKeyCredential(account+"/"+bucket, key, nil)
	if err != nil {
		return nil, err
	}
	_, err = client.Create(ctx, nil)
	return []string{
		"LAMBDALOCK_STORE=azblob://" + servers.AzuriteAccount + "/" + bucket + "/locks?" + url.Values{"endpoint": {account}}.Encode(),
		"AZURE_STORAGE_KEY=" + servers.AzuriteKey,
	}, err
}

package redelivery_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
)

var errNoArticle = errors.New("there is no such article")

// insert stands for the work of a handler.
func insert(context.Context, events.SQSMessage) error { return errNoArticle }

func ExampleSQS() {
	handle := func(ctx context.Context, m events.SQSMessage) error {
		err := insert(ctx, m)
		if errors.Is(err, errNoArticle) {
			return middleware.Permanent(err)
		}
		return err
	}

	start := func(cfg aws.Config) {
		client := sqs.NewFromConfig(cfg)
		lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, handle,
			redelivery.SQS(client, &redelivery.Options{DeadLetterQueue: os.Getenv("DEAD_LETTER_QUEUE_URL")})))
	}

	_ = start // in a function, with config.LoadDefaultConfig
	fmt.Println(handle(context.Background(), events.SQSMessage{}))
	// Output: there is no such article
}

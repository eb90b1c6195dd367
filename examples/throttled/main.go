// throttled calls the API of a partner at most once in ten seconds, however
// many messages wait. A message whose turn it is not comes back when its turn
// has come, instead of after the visibility timeout of the queue. One that the
// partner can never accept goes to the dead-letter queue at once.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of 20. Besides the permissions for
// the lock table the function needs sqs:ChangeMessageVisibility on the queue
// and sqs:SendMessage on DEAD_LETTER_QUEUE_URL. Functions that share the
// partner need the same namespace.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	dead := os.Getenv("DEAD_LETTER_QUEUE_URL")
	if dead == "" {
		log.Fatal("throttled: set DEAD_LETTER_QUEUE_URL in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("throttled: AWS configuration: %v", err)
	}
	byPartner := keyfuncs.ByField(func(s shipment) string { return s.Partner })
	lambda.Start(middleware.EachSQSBody(byPartner, call, middleware.HoldAtLeast(10*time.Second),
		redelivery.SQS(sqs.NewFromConfig(cfg), &redelivery.Options{DeadLetterQueue: dead})))
}

type shipment struct {
	Order   json.Number `json:"order"`
	Partner string      `json:"partner"`
}

// call is where your own work goes. It must end when its context does.
func call(ctx context.Context, s shipment) error {
	if s.Order == "" {
		return middleware.Permanent(errors.New("the shipment has no order"))
	}
	slog.InfoContext(ctx, "partner called", "partner", s.Partner, "order", s.Order)
	return nil
}

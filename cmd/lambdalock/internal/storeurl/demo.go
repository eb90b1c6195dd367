//go:build demo

package storeurl

import (
	"context"

	"github.com/lambdalock/lambdalock/lock/driver"
)

var errDemo = wrong("make demo builds a program that knows DynamoDB only: run make demo-redis, make demo-s3 or make demo-azure")

func openRedis(string) (driver.Store, error) { return nil, errDemo }

func openS3(context.Context, string) (driver.Store, error) { return nil, errDemo }

func openAzure(context.Context, string) (driver.Store, error) { return nil, errDemo }

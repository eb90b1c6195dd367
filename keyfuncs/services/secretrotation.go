package services

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SecretRotation works on one rotation step of a secret at a time. Name is the
// secret. There is no Event and no Order: when a step fails, Secrets Manager
// repeats the whole rotation, so write each step so that it can be repeated. To
// run each step of a version once anyway, take the Event from
// ClientRequestToken and Step with [keyfuncs.EventFrom].
func SecretRotation(_ context.Context, e events.SecretsManagerSecretRotationEvent) (lock.Key, error) {
	// https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_available-rotation-templates.html
	if err := keyparts.Required("SecretId", e.SecretID, "ClientRequestToken", e.ClientRequestToken, "Step", e.Step); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("secret", e.SecretID)}, nil
}

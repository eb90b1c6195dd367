package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestSecretRotation(t *testing.T) {
	t.Parallel()
	gives(t, "secretrotation.json", services.SecretRotation, lock.Key{Name: "secret/arn:aws:secretsmanager:us-east-1:111122223333:secret:id-ABCD1E"})
	refuses(t, "secretrotation.json", services.SecretRotation, map[string]func(*events.SecretsManagerSecretRotationEvent){
		"SecretId":           func(e *events.SecretsManagerSecretRotationEvent) { e.SecretID = "" },
		"ClientRequestToken": func(e *events.SecretsManagerSecretRotationEvent) { e.ClientRequestToken = "" },
		"Step":               func(e *events.SecretsManagerSecretRotationEvent) { e.Step = "" },
	})
}

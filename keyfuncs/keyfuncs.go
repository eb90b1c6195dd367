// Package keyfuncs turns events into lock keys. A key function says what is
// locked (Name) and which event asks for it (Event); see [lock.Key] for why the
// two differ.
//
// Functions are named for what they take, and are passed to the middleware
// unchanged: [SQSMessage] takes one message of a queue, [S3Object] an S3 event.
//
//   - S3: [S3Object], [S3Record], [S3LatestRecord]
//   - EventBridge: [EventBridgeEvent], [EventBridgeSchedule],
//     [EventBridgeS3Object]; of a Custom Event Bus [CustomBusEvent],
//     [CustomBusGroup]
//   - queues and topics: [SQSMessage], [SQSFIFOMessage], [SNSRecord],
//     [ActiveMQEvent], [RabbitMQEvent]
//   - streams: [KinesisRecord], [DynamoDBRecord], [KafkaRecord],
//     [DocumentDBRecord]
//   - HTTP: [IdempotencyKey], [HeaderKey], [HTTPTarget], [Caller],
//     [SessionCookie], [Anonymous]
//   - other services: [SESRecord], [CodeCommitRecord], and package services
//
// Constructors return a key function:
//
//   - from a field of your event: [ByField]; from nothing: [Static]
//   - from another key function: [Prefix], [Once], [EventFrom], [OrderFrom],
//     [PayloadFrom], [Join], [Hash], [HMAC], [Optional]
//   - for the event inside an envelope: [SQSBody], [SNSBody],
//     [KinesisBody], [EventBridgeDetail], [CustomBusData], [HTTPBody]
//   - for an event that holds exactly one record: [Single]
//   - for an event that needs several locks: [All]
//
// Constructors combine. SQSBody(SNSBody(S3Object)) takes one message of a queue
// that receives S3 notifications through a topic, and
// Single[events.SQSEvent](SQSMessage) takes the event of a queue with a batch
// size of 1. What to write for every source, and how often and in what order it
// delivers, is in docs/SOURCES.md; all of docs is at
// https://github.com/lambdalock/lambdalock/tree/main/docs.
//
// Package jmespath takes keys from JSON of any shape, and package awsevents has
// the event types that aws-lambda-go lacks.
//
// Every key function is deterministic, does not panic on any event, and gives
// different things different keys: each source has a prefix of its own, and the
// Name of SQSMessage is "sqs/" and the id. Names and events may be of any
// length, because package lock hashes what a store cannot hold.
//
// Errors are a [*lock.NoKeyError] that names the field at fault, [ErrIgnore] or
// [ErrNoLock].
package keyfuncs

import (
	"context"
	"errors"

	"github.com/lambdalock/lambdalock/lock"
)

// Func computes the key of an event, once per invocation and before the
// handler. If it returns an error, or a key without a Name, the handler does
// not run and the invocation fails; after [ErrIgnore] it succeeds, and after
// [ErrNoLock] the handler runs without a lock. A *lock.NoKeyError with Client
// set is answered with status 400 if the handler answers over HTTP. Any other
// error, such as that of a database, is wrapped in a *lock.NoKeyError without
// Client: the source delivers the event again, and over HTTP it is a 5xx.
type Func[E any] func(context.Context, E) (lock.Key, error)

// For is every key function for an E: one that takes an E, and one that takes
// any event, such as [Static] returns. If a wrapper does not compile, its key
// function is for something else: SQSBody(k) goes with
// middleware.EachSQSMessage, and k alone with middleware.EachSQSBody, which
// takes a key of the message as middleware.RecordKey[B](k) and a path as
// jmespath.Typed[B](k).
type For[E any] interface {
	Func[E] | func(context.Context, E) (lock.Key, error) | Func[any] | func(context.Context, any) (lock.Key, error)
}

// ErrIgnore says that the event contains nothing to work on: the invocation
// succeeds without a lock and without running the handler, and a warning is
// logged.
var ErrIgnore = errors.New("lambdalock: nothing to work on")

// ErrNoLock says that the event needs no lock: the handler runs without one,
// its event is not remembered, and every duplicate runs too. The outcome is
// middleware.OutcomeNoLock. [Optional] returns it.
var ErrNoLock = errors.New("lambdalock: the event needs no lock")

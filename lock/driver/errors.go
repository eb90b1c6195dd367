package driver

// Error says that a store did not answer, or that it refused to. It says
// nothing about the lock. Package lock returns it to its callers as a
// *lock.StoreError. After an error of any other type the request is repeated,
// and may have been applied.
type Error struct {
	Store  string // what was asked, for example "DynamoDB table orders-locks"
	Action string // the AWS action that was denied, for example "dynamodb:UpdateItem"; otherwise empty
	Hint   string // what to change, if that is known

	// Lasting reports whether the store would refuse a later try, too: the caller
	// is denied, the table is missing, the command is unknown, the same request
	// must not be sent again. A store sets it only for what it knows: a refusal
	// that it does not know may pass, so it is repeated while there is time.
	Lasting bool
	// Answered reports whether the last attempt was refused, by the store or by
	// what stands before it. False: there was no answer, it was an internal error,
	// or nothing was sent. An Answered error that is neither Lasting nor a Conflict
	// means that the store throttled the request, or refused it for an unknown
	// reason: it is repeated after longer pauses.
	Answered bool
	// Unapplied reports whether nothing of the request was applied and no copy of
	// it still can be: each attempt, with those that the client repeated by itself,
	// was refused by the store or never sent.
	Unapplied bool
	// Conflict reports whether another write of the same row was under way, so that
	// the request may be repeated immediately.
	Conflict bool

	Err error // what the client reported
}

// Error implements error.
func (e *Error) Error() string {
	s := "lambdalock"
	if e.Store != "" {
		s += ": " + e.Store
	}
	if e.Action != "" {
		s += ": " + e.Action + " was denied"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// ConfigError says which setting is wrong and what to change.
type ConfigError struct {
	Reason string // what is wrong and what to change
	Err    error  // the cause; may be nil
}

// Error implements error.
func (e *ConfigError) Error() string {
	if e.Err != nil {
		return "lambdalock: " + e.Reason + ": " + e.Err.Error()
	}
	return "lambdalock: " + e.Reason
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

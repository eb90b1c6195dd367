package fakedynamo

import (
	"maps"
	"regexp"
	"slices"
)

// table is one table.
type table struct {
	description map[string]any
	key         string          // the name of the partition key attribute
	ttl         string          // the time to live attribute, "" while disabled
	items       map[string]item // by partition key
}

type keyElement struct{ AttributeName, KeyType string }

type attributeDefinition struct{ AttributeName, AttributeType string }

type timeToLive struct {
	AttributeName string
	Enabled       bool
}

var validTableName = regexp.MustCompile(`^[\w.-]{3,255}$`)

func (s *Server) createTable(in *input) (any, error) {
	if !validTableName.MatchString(in.TableName) {
		return nil, invalid("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	key := ""
	if len(in.KeySchema) > 0 {
		key = in.KeySchema[0].AttributeName
	}
	if key == "" || in.BillingMode != "PAY_PER_REQUEST" || !slices.Equal(in.KeySchema, []keyElement{{key, "HASH"}}) ||
		!slices.Equal(in.AttributeDefinitions, []attributeDefinition{{key, "S"}}) {
		return nil, invalid("fakedynamo does not support tables other than on-demand ones with a single string partition key")
	}
	if s.tables[in.TableName] != nil {
		return nil, failure(dynamoType+"ResourceInUseException", "Table already exists: "+in.TableName)
	}
	description := map[string]any{
		"TableName": in.TableName, "TableStatus": "ACTIVE", "KeySchema": in.KeySchema, "AttributeDefinitions": in.AttributeDefinitions,
		"BillingModeSummary": map[string]string{"BillingMode": in.BillingMode},
	}
	s.tables[in.TableName] = &table{key: key, items: make(map[string]item), description: description}
	return map[string]any{"TableDescription": description}, nil
}

// existing returns the table that a request is about.
func (s *Server) existing(in *input) (*table, error) {
	if t := s.tables[in.TableName]; t != nil {
		return t, nil
	}
	return nil, failure(dynamoType+"ResourceNotFoundException", "Requested resource not found: Table: "+in.TableName+" not found")
}

func (s *Server) describeTable(in *input) (any, error) {
	t, err := s.existing(in)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": t.description}, nil
}

// listTables answers with all names at once: a body that asks for pages has
// members that are refused.
func (s *Server) listTables(*input) (any, error) {
	return map[string]any{"TableNames": slices.Sorted(maps.Keys(s.tables))}, nil
}

func (s *Server) updateTimeToLive(in *input) (any, error) {
	t, err := s.existing(in)
	spec := in.TimeToLiveSpecification
	switch {
	case err != nil:
		return nil, err
	case !spec.Enabled || spec.AttributeName == "":
		return nil, invalid("fakedynamo does not support UpdateTimeToLive except to enable it for an attribute")
	case t.ttl != "":
		return nil, invalid("TimeToLive is already enabled")
	}
	t.ttl = spec.AttributeName
	return map[string]any{"TimeToLiveSpecification": spec}, nil
}

func (s *Server) describeTimeToLive(in *input) (any, error) {
	t, err := s.existing(in)
	if err != nil {
		return nil, err
	}
	description := map[string]string{"TimeToLiveStatus": "DISABLED"}
	if t.ttl != "" {
		description = map[string]string{"TimeToLiveStatus": "ENABLED", "AttributeName": t.ttl}
	}
	return map[string]any{"TimeToLiveDescription": description}, nil
}

// describeEndpoints names the address that the client already uses, so that
// endpoint discovery leads nowhere else.
func (s *Server) describeEndpoints(in *input) (any, error) {
	return map[string]any{"Endpoints": []any{
		map[string]any{"Address": in.host, "CachePeriodInMinutes": 1440},
	}}, nil
}

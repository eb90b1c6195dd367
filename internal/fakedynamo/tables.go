package fakedynamo

import (
	"fmt"
	"time"
)

// account is the account that owns the tables, as it appears in ARNs.
const account = "123456789012"

// table is one table: its key schema and its items by partition key.
type table struct {
	name    string
	key     string // the name of the partition key attribute
	created time.Time
	ttl     string // the time to live attribute, "" while disabled
	items   map[string]item
}

// tableRequest is the body of a table operation. Members that change nothing
// about how a table behaves here, such as Tags, are left out and so ignored.
type tableRequest struct {
	TableName              string
	BillingMode            string
	KeySchema              []keyElement
	AttributeDefinitions   []attributeDefinition
	GlobalSecondaryIndexes []any
	LocalSecondaryIndexes  []any
	StreamSpecification    map[string]any

	TimeToLiveSpecification *timeToLive
}

type keyElement struct {
	AttributeName string
	KeyType       string
}

type attributeDefinition struct {
	AttributeName string
	AttributeType string
}

type timeToLive struct {
	AttributeName string
	Enabled       bool
}

// tableOperation returns the operation of that name, or nil.
func (s *Server) tableOperation(name string) func(in tableRequest, host string) (response, *apiError) {
	switch name {
	case "CreateTable":
		return s.createTable
	case "DescribeTable":
		return s.describeTable
	case "UpdateTimeToLive":
		return s.updateTimeToLive
	case "DescribeTimeToLive":
		return s.describeTimeToLive
	case "DescribeEndpoints":
		return describeEndpoints
	}
	return nil
}

func (s *Server) createTable(in tableRequest, _ string) (response, *apiError) {
	if err := in.validateTable(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[in.TableName] != nil {
		return nil, failure(dynamoType+"ResourceInUseException", "Table already exists: "+in.TableName)
	}
	t := &table{name: in.TableName, key: in.KeySchema[0].AttributeName, created: time.Now(), items: make(map[string]item)}
	s.tables[t.name] = t
	return map[string]any{"TableDescription": t.describe()}, nil
}

// validateTable checks that a table is one that this package can keep.
func (in tableRequest) validateTable() *apiError {
	switch {
	case !validTableName(in.TableName):
		return invalid("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	case len(in.KeySchema) == 0:
		return invalid("No defined key schema.  A key schema containing at least a hash key must be defined for all tables")
	case len(in.AttributeDefinitions) == 0:
		return invalid("No Attribute Schema Defined")
	case len(in.KeySchema) != 1 || len(in.AttributeDefinitions) != 1 || in.KeySchema[0].KeyType != "HASH" || in.AttributeDefinitions[0].AttributeType != "S":
		return invalid("fakedynamo keeps only tables with a single string partition key")
	case in.KeySchema[0].AttributeName != in.AttributeDefinitions[0].AttributeName:
		return invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [" + in.KeySchema[0].AttributeName + "], AttributeDefinitions: [" + in.AttributeDefinitions[0].AttributeName + "]")
	case in.BillingMode != "PAY_PER_REQUEST":
		return invalid("fakedynamo keeps only tables with BillingMode PAY_PER_REQUEST")
	case len(in.GlobalSecondaryIndexes) > 0 || len(in.LocalSecondaryIndexes) > 0 || len(in.StreamSpecification) > 0:
		return invalid("fakedynamo keeps only tables without indexes and streams")
	}
	return nil
}

func validTableName(name string) bool {
	for _, c := range []byte(name) {
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return len(name) >= 3 && len(name) <= 255
}

func (s *Server) describeTable(in tableRequest, _ string) (response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.existing(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": t.describe()}, nil
}

func (s *Server) updateTimeToLive(in tableRequest, _ string) (response, *apiError) {
	spec := in.TimeToLiveSpecification
	if spec == nil || spec.AttributeName == "" {
		return nil, invalid("1 validation error detected: Value null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.existing(in.TableName)
	switch {
	case err != nil:
		return nil, err
	case t.ttl != "" && t.ttl != spec.AttributeName:
		return nil, invalid("TimeToLive is active on a different AttributeName")
	case spec.Enabled && t.ttl != "":
		return nil, invalid("TimeToLive is already enabled")
	case !spec.Enabled && t.ttl == "":
		return nil, invalid("TimeToLive is already disabled")
	}
	t.ttl = ""
	if spec.Enabled {
		t.ttl = spec.AttributeName
	}
	return map[string]any{"TimeToLiveSpecification": *spec}, nil
}

func (s *Server) describeTimeToLive(in tableRequest, _ string) (response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.existing(in.TableName)
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
func describeEndpoints(_ tableRequest, host string) (response, *apiError) {
	return map[string]any{"Endpoints": []any{
		map[string]any{"Address": host, "CachePeriodInMinutes": 1440},
	}}, nil
}

// existing returns the table of that name, for the operations on tables: their
// error names the table, that of UpdateItem does not.
func (s *Server) existing(name string) (*table, *apiError) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, failure(dynamoType+"ResourceNotFoundException", "Requested resource not found: Table: "+name+" not found")
}

func (t *table) describe() map[string]any {
	return map[string]any{
		"TableName":            t.name,
		"TableStatus":          "ACTIVE",
		"TableArn":             tableARN(t.name),
		"CreationDateTime":     float64(t.created.UnixMilli()) / 1000,
		"KeySchema":            []keyElement{{AttributeName: t.key, KeyType: "HASH"}},
		"AttributeDefinitions": []attributeDefinition{{AttributeName: t.key, AttributeType: "S"}},
		"BillingModeSummary":   map[string]string{"BillingMode": "PAY_PER_REQUEST"},
		"ItemCount":            len(t.items),
	}
}

func tableARN(name string) string {
	return fmt.Sprintf("arn:aws:dynamodb:us-east-1:%s:table/%s", account, name)
}

# The lock table, its permission and its alarms, for Terraform; docs/STORES.md explains them.
resource "aws_dynamodb_table" "locks" {
  name         = "orders-locks"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "lock"

  deletion_protection_enabled = true

  attribute {
    name = "lock"
    type = "S"
  }

  ttl {
    attribute_name = "deleteAfter"
    enabled        = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "lock" {
  statement {
    effect    = "Allow"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.locks.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["orders/*"]
    }

    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
}

resource "aws_iam_role_policy" "lock" {
  name   = "lock"
  role   = aws_iam_role.handler.id
  policy = data.aws_iam_policy_document.lock.json
}

resource "aws_cloudformation_stack" "lock_alarms" {
  name          = "orders-lock-alarms"
  template_body = file("alarms/logs.json")

  parameters = {
    Table    = aws_dynamodb_table.locks.name
    LogGroup = aws_cloudwatch_log_group.handler.name
    Topic    = aws_sns_topic.alerts.arn
  }
}

# And in the function:
#   environment {
#     variables = {
#       LOCK_TABLE_NAME = aws_dynamodb_table.locks.name
#       LOCK_NAMESPACE  = "orders"
#     }
#   }

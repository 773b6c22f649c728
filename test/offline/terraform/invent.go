package main

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// idPrefixes maps resource types to the prefixes of their ids in AWS.
var idPrefixes = map[string]string{
	"aws_instance": "i", "aws_internet_gateway": "igw", "aws_launch_template": "lt", "aws_route_table": "rtb",
	"aws_security_group": "sg", "aws_subnet": "subnet", "aws_vpc": "vpc",
	"aws_vpc_security_group_egress_rule": "sgr", "aws_vpc_security_group_ingress_rule": "sgr",
}

// invent returns a value for an attribute that AWS would compute, in the format that other resources require. The value
// depends only on the arguments.
func invent(typeName, name string, kind tftypes.Type, seed string) tftypes.Value {
	switch k := kind.(type) {
	case tftypes.List:
		if name == "names" || name == "locations" { // availability zones of a region or of an instance type
			zone := func(letter string) tftypes.Value { return tftypes.NewValue(tftypes.String, "us-east-1"+letter) }
			return tftypes.NewValue(k, []tftypes.Value{zone("a"), zone("b")})
		}
		object, ok := k.ElementType.(tftypes.Object)
		if !ok {
			return tftypes.NewValue(k, []tftypes.Value{})
		}
		fields := map[string]tftypes.Value{}
		for field, fieldType := range object.AttributeTypes {
			fields[field] = invent(typeName, field, fieldType, seed)
		}
		return tftypes.NewValue(k, []tftypes.Value{tftypes.NewValue(object, fields)})
	case tftypes.Set:
		return tftypes.NewValue(k, []tftypes.Value{})
	case tftypes.Map:
		return tftypes.NewValue(k, map[string]tftypes.Value{})
	}
	switch {
	case kind.Is(tftypes.String):
		return tftypes.NewValue(kind, inventText(typeName, name, seed))
	case kind.Is(tftypes.Bool):
		return tftypes.NewValue(kind, false)
	case kind.Is(tftypes.Number):
		return tftypes.NewValue(kind, big.NewFloat(1))
	}
	return tftypes.NewValue(kind, nil)
}

func inventText(typeName, name, seed string) string {
	hash := sha256.Sum256([]byte(typeName + name + seed))
	digits := hex.EncodeToString(hash[:])[:17]
	switch {
	case name == "id" && idPrefixes[typeName] != "":
		return idPrefixes[typeName] + "-" + digits
	case strings.HasSuffix(name, "arn"):
		return "arn:aws:fake:us-east-1:123456789012:" + strings.TrimPrefix(typeName, "aws_") + "/" + digits
	case strings.Contains(name, "public_ip"):
		return "203.0.113.10"
	case strings.Contains(name, "private_ip"):
		return "10.0.0.10"
	case typeName == "data.aws_ssm_parameter": // the id of an Ubuntu image
		return "ami-" + digits
	}
	return name + "-" + digits
}

JSON.parse("{bad");

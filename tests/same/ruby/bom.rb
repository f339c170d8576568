puts __ENCODING__, __LINE__

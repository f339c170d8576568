# -*- coding: iso-8859-1 -*-
p __ENCODING__, 'x'.encoding, "\xe9".encode('utf-8')
